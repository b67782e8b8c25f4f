// Summarisers of chance, good and bad, and providers that refuse: no conversation is locked, and none loses what it must keep.
import { parts } from "../../src/parts/part.ts";
import { CUT_OFF } from "../../src/context/compactor.ts";
import { contextOf } from "../../src/turn/step/step-run.ts";
import type { ScriptedCall } from "perdure/testing";
import { expect, test } from "vitest";
import { seedCount } from "../support/seed-count.ts";
import { refusal } from "../think/harness.ts";
import { type Random, random } from "../think/interleave-random.ts";
import { long, openSmall, reader } from "./compacting.ts";

const SEEDS = seedCount(600, 20);
const OPS = 14;
const FACT = "The safe is behind the map of Bergen.";
const VOICES = ["well", "fails", "says nothing", "says too much", "is full"] as const;
const WEIGHTS = { ask: 8, pin: 1, unpin: 0.5, voice: 2, provider: 1.5, restart: 1, fork: 0.7, undo: 1.5 } as const;

type Voice = (typeof VOICES)[number];
const tooLong = () => ({ error: refusal(400, "This model's maximum context length is 4000 tokens.") });

class Scene {
  voice: Voice = "well";
  /** What the provider takes, in characters. */
  most = Number.POSITIVE_INFINITY;
  readonly pins = new Map<string, string>();
  readonly faults: string[] = [];
  /** The requests of the turn that runs, how long each was, and whether it was refused. */
  turn: { readonly size: number; readonly refused: boolean }[] = [];
  asked = "";
  reads = 0;

  summary() {
    if (this.voice === "fails") return { error: refusal(401, "bad key") };
    if (this.voice === "is full") return tooLong();
    if (this.voice === "says nothing") return "\n";
    return this.voice === "well" ? "## Goal\nAll is forgotten." : long("## Goal\n", 9_000);
  }

  answer({ prompt }: ScriptedCall) {
    const said = prompt.filter(({ role }) => role !== "system");
    const text = said.map(({ content }) => JSON.stringify(content)).join("\n");
    const fault = (words: string) => void this.faults.push(`${words} (asked ${this.asked.slice(0, 20)})`);
    if (said[0]?.role !== "user") fault(`begins with ${said[0]?.role}`);
    for (const pin of [...this.pins.values(), this.asked, FACT]) {
      if (!text.includes(JSON.stringify(pin).slice(1, -1))) fault(`misses ${pin.slice(0, 20)}`);
    }
    const ids = (type: string) =>
      said.flatMap(({ content }) =>
        typeof content === "string"
          ? []
          : content.flatMap((one) => (one.type === type && "toolCallId" in one ? [one.toolCallId] : [])),
      );
    if (ids("tool-call").join() !== ids("tool-result").join()) fault("calls without their results");
    const last = this.turn.at(-1);
    const refused = text.length > this.most;
    if (last?.refused === true && text.length >= last.size) fault("refused, and asked with no less");
    this.turn.push({ size: text.length, refused });
    if (refused) return tooLong();
    if (this.reads-- <= 0) return "Yes.";
    return { text: "I read.", toolCalls: [{ toolName: "read", input: { tokens: 700 } }] };
  }
}

async function play(
  scene: Scene,
  kit: Awaited<ReturnType<typeof openSmall>>,
  chance: Random,
  op: keyof typeof WEIGHTS,
) {
  const agent = await kit.agent();
  const { session } = agent;
  const path = session.getHistory();
  const base = () =>
    JSON.stringify(contextOf(agent[parts].chat.chat, agent[parts].think.window.reader, session.id, 0).base);
  switch (op) {
    case "ask": {
      scene.turn = [];
      scene.asked = long(`«${path.length}»`, chance.pick([5, 300, 900]));
      scene.reads = chance.pick([0, 0, 1, 3]);
      const end = await kit.ask(scene.asked);
      if (end.status !== "completed" && scene.turn.at(-1)?.refused !== true) scene.faults.push(`ended: ${end.error}`);
      return;
    }
    case "pin": {
      // What is long leaves no room for anything else.
      const some = path.filter(({ role, parts: [part] }) => role === "user" && JSON.stringify(part).length < 1_500);
      const one = some[chance.int(some.length)];
      const [part] = one?.parts ?? [];
      if (one === undefined || part?.type !== "text" || scene.pins.size > 2) return;
      session.pin(one.id);
      scene.pins.set(one.id, part.text);
      return;
    }
    case "unpin": {
      const [id] = scene.pins.keys();
      if (id !== undefined) session.unpin(id);
      scene.pins.delete(id ?? "");
      return;
    }
    case "voice":
      scene.voice = chance.pick(VOICES);
      return;
    case "provider":
      scene.most = chance.pick([15_000, 20_000, Number.POSITIVE_INFINITY]);
      return;
    case "restart":
      return kit.restart();
    case "fork": {
      const last = path.at(-1);
      if (last !== undefined) agent.switchSession(agent.forkSession(undefined, { at: last.id }).id);
      return;
    }
    case "undo": {
      const before = base();
      const made = await agent.compact().catch(() => undefined);
      if (made === undefined) return;
      const undone = await agent.undoCompaction(made.id).catch(() => undefined);
      if (undone !== undefined && base() !== before) scene.faults.push("undone, and not the same");
    }
  }
}

test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("with the seed %i", async (seed) => {
  const chance = random(seed);
  const scene = new Scene();
  const kit = await openSmall({
    ...{ summary: () => scene.summary(), answer: (call) => scene.answer(call), tools: { read: reader } },
    settings: { modelLimits: { "scripted/*": { window: 100_000, input: chance.pick([4_000, 80_000]) } } },
  });
  await kit.ask(FACT);
  const ops: string[] = [];
  for (let i = 0; i < OPS; i++) {
    const op = i === OPS - 1 ? "ask" : chance.weighted(WEIGHTS);
    ops.push(op);
    await play(scene, kit, chance, op);
    expect(scene.faults, ops.join(" ")).toEqual([]);
  }
  // At most two tries in vain in a turn; and what was left out is told by its row.
  const vain = new Map<number | null, number>();
  const made = await kit.compactions();
  for (const { error } of made.filter(({ kind }) => kind === "truncate"))
    expect(error).toContain("nothing was deleted");
  for (const { turn, kind, status, error } of made) {
    if (kind === "summary" && status === "failed" && error !== CUT_OFF && turn !== null)
      vain.set(turn, (vain.get(turn) ?? 0) + 1);
  }
  expect(Math.max(0, ...vain.values())).toBeLessThanOrEqual(2);
  // Nothing is locked: a summariser that works, and a provider that takes what a summary leaves.
  Object.assign(scene, { voice: "well", most: Number.POSITIVE_INFINITY });
  await play(scene, kit, chance, "ask");
  expect(scene.faults).toEqual([]);
  expect((await kit.agent()).listCompactions().some(({ inEffect, kind }) => inEffect && kind === "truncate")).toBe(
    false,
  );
});
