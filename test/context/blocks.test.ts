// A compaction changes the whole request: that is when a frozen prompt is made anew, and when unloaded texts go.
import type { Session } from "perdure";
import { loadableContext } from "perdure/context";
import type { RecordedCall, ScriptedCall } from "perdure/testing";
import { expect, test } from "vitest";
import { outputsSent, systemOf } from "../think/harness.ts";
import { fill, openSmall, shown } from "./compacting.ts";

const SECRET = "Boil the water first.";

const call = (toolName: string, input: object, toolCallId: string) => ({ toolName, input, toolCallId });

/** Remembers what it is told to; loads a text and unloads it again. */
function answer({ userText, step }: ScriptedCall) {
  if (userText.startsWith("Remember") && step === 0)
    return { toolCalls: [call("set_context", { label: "memory", content: userText, action: "append" }, "c-set")] };
  if (userText === "Make tea." && step < 2) {
    const [tool, id] = step === 0 ? ["load_context", "c-load"] : ["unload_context", "c-unload"];
    return { toolCalls: [call(tool ?? "", { label: "skills", key: "tea" }, id ?? "")] };
  }
  return "Yes.";
}

async function open() {
  const kit = await openSmall({
    answer,
    extend: (Base) =>
      class extends Base {
        override configureSession(session: Session) {
          return session
            .withContext("memory", { maxTokens: 200 })
            .withContext("skills", { provider: loadableContext({ tea: { description: "Tea", content: SECRET } }) })
            .withCachedPrompt();
        }
      },
  });
  const lastCall = () => kit.turns().at(-1);
  return Object.assign(kit, { lastCall });
}

const systemIn = (one: RecordedCall | undefined) =>
  (one?.prompt ?? []).map((message) => (message.role === "system" ? message.content : "")).join("");

test("a compaction makes a frozen prompt anew, and it stays so", async () => {
  const kit = await open();
  await fill(kit, 2);
  await kit.ask("Remember the boat.");
  await kit.ask("So?");
  const before = systemIn(kit.lastCall());
  expect(before).toBe(systemOf(kit.model, 0));
  expect(before).not.toContain("the boat");
  await (await kit.agent()).compact();
  await kit.ask("So?");
  const after = systemIn(kit.lastCall());
  expect(after).toContain("Remember the boat.");
  await kit.ask("Remember the lake.");
  await kit.restart();
  await kit.ask("So?");
  expect(systemIn(kit.lastCall())).toBe(after);
});

test("a text that was unloaded is there until a compaction, and then a note is", async () => {
  const kit = await open();
  await fill(kit, 2);
  await kit.ask("Make tea.");
  await kit.ask("Thanks.");
  expect(shown(kit.lastCall())).toContain(SECRET);
  await (await kit.agent()).compact();
  await kit.ask("More?");
  const after = shown(kit.lastCall());
  expect(after).not.toContain(SECRET);
  expect(JSON.stringify(outputsSent(kit.model, kit.model.calls.length - 1)["c-load"])).toContain("was unloaded");
  // Loaded again, it is there again.
  await kit.ask("Make tea.");
  expect(shown(kit.lastCall())).toContain(SECRET);
});

test("when a turn is compacted on its way, its next call has the new prompt", async () => {
  const kit = await open();
  await kit.ask("Remember the boat.");
  await fill(kit, 5);
  expect((await kit.compactions()).some(({ status }) => status === "done")).toBe(true);
  const systems = kit.turns().map(systemIn);
  const first = systems.findIndex((system) => system.includes("Remember the boat."));
  expect(first).toBeGreaterThan(0);
  // It was made anew together with the conversation: the call before has no summary, this one has.
  expect(shown(kit.turns()[first - 1])).not.toContain("Be short.");
  expect(shown(kit.turns()[first])).toContain("Be short.");
});
