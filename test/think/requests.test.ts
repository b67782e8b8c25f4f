import type { ModelMessage } from "ai";
import type { AgentHost, Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, serverTool } from "./harness.ts";
import { asHanded, handed, rowsOf, shownRequests } from "./request-kit.ts";

const SECRET = "hunter2-is-the-password";

async function open(script: Script, extend: (agent: Think) => void = () => {}, budget = false) {
  const ports: AgentHost[] = [];
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        constructor(host: AgentHost) {
          super(host);
          ports.push(host);
          if (budget) this.budgets = { agent: { maxTokens: 1_000_000 } };
          extend(this);
        }
        override getModel() {
          return model;
        }
        override getTools() {
          const toModelOutput = () => ({ type: "text" as const, value: `It is ${SECRET}.` });
          return { look: serverTool(() => "a boat", { toModelOutput }) };
        }
      },
  );
  const port = () => rowsOf(ports.at(-1));
  return Object.assign(kit, {
    model,
    port,
    proofs: async () => (await shownRequests(port())).map(({ proof }) => proof),
  });
}

const lookThenSay: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: `c${Math.random()}` }] } : "A boat.";

const frames = "SELECT session, kind, body FROM perdure_frame";
interface Frame {
  readonly session: string;
  readonly kind: string;
  readonly body: string;
}

test("what a hook or a tool makes of messages is stored beside them, up to a bound", async () => {
  const script: Script = ({ index, ...call }) =>
    index === 0 && typeof lookThenSay === "function" ? lookThenSay({ index, ...call }) : "A boat.";
  const kit = await open(script, (agent) => {
    agent.beforeStep = ({ stepNumber, messages }) =>
      stepNumber === 0
        ? undefined
        : ({ messages: [...messages, { role: "user", content: "Be brief." }], temperature: 0 } as never);
  });
  await kit.ask("Look.");
  const [, second] = await shownRequests(kit.port());
  expect(await kit.proofs()).toEqual(["exact", "exact"]);
  expect(JSON.stringify(second?.messages)).toContain(`It is ${SECRET}.`);
  expect(second?.messages.at(-1)).toEqual({ role: "user", content: "Be brief." });
  expect(second && (await asHanded(second))).toBe(handed(kit.model.calls[1]));

  const large = "x".repeat(300_000);
  const other = await open(
    "abc".split("").map(() => "Yes."),
    (agent) => {
      agent.beforeStep = () => ({ messages: [{ role: "user", content: large } satisfies ModelMessage] });
    },
  );
  await other.ask("Hello");
  expect(await other.proofs()).toEqual(["opaque"]);
  expect(JSON.stringify(await other.rows(frames)).length).toBeLessThan(large.length);
});

test("texts are stored once, however many calls and lives there are", async () => {
  const kit = await open(() => "Yes.", undefined, true);
  for (let i = 0; i < 3; i++) await kit.ask("Hello");
  await kit.nextLife();
  await kit.ask("Hello again");
  const kinds = (await kit.rows<Frame>(frames)).map(({ kind }) => kind);
  expect(kinds.toSorted()).toEqual(["frame", "instructions", "settings", "tools"]);
  expect(await kit.proofs()).toEqual(["exact", "exact", "exact", "exact"]);
  // The bound that a budget sets is a part of the request.
  expect((await shownRequests(kit.port())).map(({ cap }) => cap)).toEqual([8192, 8192, 8192, 8192]);
});

test("erasing a session erases what was stored of its requests, and leaves those of others whole", async () => {
  const kit = await open(lookThenSay);
  await kit.ask("Look.");
  const agent = await kit.agent();
  const other = agent.sessions.create();
  await agent.runTurn({ input: "Look too.", session: other.id });
  const of = async () => (await kit.rows<Frame>(frames)).map(({ session, kind }) => `${kind} ${session}`).toSorted();
  expect(await of()).toEqual(
    ["frame ", "instructions ", `message ${other.id}`, "message main", "settings ", "tools "].toSorted(),
  );
  await agent.erase({ session: "main" });
  expect(await of()).toEqual(["frame ", "instructions ", `message ${other.id}`, "settings ", "tools "].toSorted());
  await agent.runTurn({ input: "And again.", session: other.id });
  expect(await kit.proofs()).toEqual(["exact", "exact", "exact", "exact"]);
  await agent.erase({ session: other.id });
  expect(await of()).toEqual([]);
  await agent.runTurn({ input: "Anew." });
  expect(await kit.proofs()).toEqual(["exact", "exact"]);
});

test("a conversation that is cleared leaves nothing of what it was shown as", async () => {
  const kit = await open(lookThenSay);
  await kit.ask("Look.");
  expect(JSON.stringify(await kit.rows(frames))).toContain(SECRET);
  const client = await kit.connect();
  client.clear();
  await client.flushed();
  expect(JSON.stringify(await kit.rows(frames))).not.toContain(SECRET);
  expect(await kit.proofs()).toEqual(["edited", "opaque"]);
});
