import { expect, test } from "vitest";
import { seeded } from "../support/seeded.ts";
import { type ChatClient, user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { durableTool } from "perdure";
import { serverTool } from "../think/harness.ts";
import { childClass, given, heardText, newGate, openTogether, runFrames, storedRuns } from "./harness.ts";

const WORDS = 6;
const SEEDS = 6;
const whole = `${Array.from({ length: WORDS }, (_, i) => `word ${i}. `).join("")}The end.`;

/** What a client makes of the frames: each number once, as the first frame with it said. */
function made(client: ChatClient) {
  const known = new Set<number>();
  return runFrames(client).filter(({ sequence, event }) => {
    if (event.kind !== "chunk") return true;
    const isNew = !known.has(sequence);
    known.add(sequence);
    return isNew;
  });
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`lives of parent and child end at any moment, and clients come at any moment: seed ${seed}`, async () => {
    const random = seeded(seed);
    const gates = Array.from({ length: WORDS }, newGate);
    const asked = new Set<number>();
    const wait = serverTool<{ step: number }>(async ({ step }) => {
      asked.add(step);
      await gates[step]?.opened;
      return "waited";
    });
    const { Researcher } = childClass(
      ({ step }) =>
        step < WORDS
          ? { text: `word ${step}. `, toolCalls: [{ toolName: "wait", input: { step }, toolCallId: `w${step}` }] }
          : "The end.",
      { wait: durableTool(wait, { replay: "safe" }) },
    );
    const kit = await openTogether(Researcher);
    const clients = [await kit.connect()];
    clients[0]?.request("r1", [user("u1")]);
    for (const [step, gate] of gates.entries()) {
      await eventually(() => asked.has(step), `step ${step}`);
      const [run] = await storedRuns(kit);
      for (let i = random(3); i > 0; i--) {
        const dice = random(100);
        if (dice < 35) (await kit.agent()).abortSubAgent(Researcher, run?.runId ?? "");
        else if (dice < 60) await kit.nextLife();
        else clients.push(await kit.connect());
        if (random(2) === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      gate.open();
    }
    const [first] = clients;
    expect(await first?.done("r1")).toMatchObject({ outcome: "completed" });
    expect(given(kit.model, kit.model.calls.length - 1)).toBe("The end.");
    expect((await storedRuns(kit)).map(({ status }) => status)).toEqual(["completed"]);
    clients.push(await kit.connect());
    for (const client of clients) {
      await eventually(() => runFrames(client).some(({ event }) => event.kind === "finished"), "the end for a client");
      const frames = made(client).filter(({ event }) => event.kind === "chunk");
      expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i + 1));
      expect(heardText(frames)).toBe(whole);
      expect(runFrames(client).filter(({ event }) => event.kind === "finished")).toHaveLength(1);
    }
  });
}
