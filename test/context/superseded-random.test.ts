// Conversations of chance with outputs that are looked at again: what must be true of every request.
import { expect, test } from "vitest";
import { Compactor } from "../../src/context/compactor.ts";
import { project } from "../../src/context/view.ts";
import { isToolPart, type Part, type ToolPart, type UIMessage } from "../../src/message/types.ts";
import { readMessage, setPinned } from "../../src/store/message.ts";
import { probeHost } from "../chat/probe-host.ts";
import { seedCount } from "../support/seed-count.ts";
import { type Random, random } from "../think/interleave-random.ts";
import { answer, called, jobOn, measureOf, step, TestPath, text, user } from "./paths.ts";

const SEEDS = seedCount(1_000, 12);
const TURNS = 14;
const FILES = ["a", "b", "c", "d"] as const;
const NOTE = /^\[Superseded: .*? The newer one is that of call (\S+) in message (\S+)\.\]$/;

/** A call of a step: what it read, or that it could not. */
function anyCall(chance: Random, id: string): Part {
  const input = { path: chance.pick(FILES) };
  if (chance.chance(0.2)) {
    return { type: "tool-read", toolCallId: id, state: "output-error", input, errorText: "It is gone." } as Part;
  }
  return called(chance.chance(0.1) ? "rules" : "read", id, `${id}: ${"abc ".repeat(chance.int(900))}`, input);
}

function anyAnswer(chance: Random, id: string): UIMessage {
  const parts: Part[] = [];
  for (let s = 0; s <= chance.int(4); s++) {
    parts.push(step, text(`step ${s}`));
    // Providers use ids of calls again in later answers.
    for (let n = chance.int(3); n >= 0; n--)
      parts.push(anyCall(chance, chance.chance(0.3) ? `c${s}${n}` : `${id}${s}${n}`));
  }
  return answer(id, ...parts);
}

interface Output {
  readonly message: string;
  readonly part: ToolPart;
  readonly step: string;
}

const outputsOf = (messages: readonly UIMessage[]): Output[] =>
  messages.flatMap(({ id, parts }) =>
    parts.flatMap((part, at) => {
      if (!isToolPart(part) || part.state !== "output-available") return [];
      return [
        { message: id, part, step: `${id} ${parts.slice(0, at).findLastIndex(({ type }) => type === "step-start")}` },
      ];
    }),
  );
const subjectOf = ({ part }: Output) => JSON.stringify([part.type, part.input]);

test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("with the seed %i", async (seed) => {
  const chance = random(seed);
  const { host } = await probeHost();
  const path = new TestPath(host);
  const compactor = new Compactor(host);
  const pins = new Set<string>();
  const job = jobOn(path, {
    ...{ trigger: "after", measure: measureOf(6_000), keepAlways: (tool) => tool === "rules" },
    subjects: ({ input }) => [JSON.stringify(input)],
  });
  const sent = () => project(path.view()).map((message) => JSON.stringify(message));
  /** Every request that was made, by the message at its end. */
  const requests = new Map<number | null, string[]>();
  let pruned = 0;
  /** By hand, old outputs are cleared too. */
  let isOld = (_output: unknown) => false;

  const check = () => {
    const stored = path.view().nodes.map(({ message }) => message);
    const all = outputsOf(stored);
    const seen = new Map(outputsOf(project(path.view())).map((one) => [`${one.message} ${one.part.toolCallId}`, one]));
    for (const [index, one] of all.entries()) {
      const shown = seen.get(`${one.message} ${one.part.toolCallId}`)?.part.output;
      // A call and its result stay together, in their places.
      expect(shown).toBeDefined();
      if (shown === one.part.output || isOld(shown)) continue;
      expect(pins.has(one.message) || one.part.type === "tool-rules", one.part.toolCallId).toBe(false);
      const [, call, message] = NOTE.exec(String(shown)) ?? [];
      // A newer one on the same path, of the same, in a later step.
      const at = all.findIndex((other) => other.message === message && other.part.toolCallId === call);
      const newer = all[at];
      expect(at, String(shown)).toBeGreaterThan(index);
      expect(newer && subjectOf(newer)).toBe(subjectOf(one));
      expect(newer?.step).not.toBe(one.step);
    }
    // The newest of each is always shown.
    for (const one of new Map(all.map((output) => [subjectOf(output), output])).values()) {
      const output = seen.get(`${one.message} ${one.part.toolCallId}`)?.part.output;
      expect(isOld(output) ? one.part.output : output).toBe(one.part.output);
    }
  };

  const checkUndo = (id: string, before: readonly string[], again: () => unknown) => {
    const after = sent();
    expect(after.join().length).toBeLessThan(before.join().length);
    compactor.undo(id, path.view(), measureOf(1_000_000));
    expect(sent()).toEqual(before);
    expect(again()).toBeDefined();
    expect(sent()).toEqual(after);
  };

  for (let turn = 0; turn < TURNS; turn++) {
    const op = chance.weighted({ go: 10, fork: 2, pin: 1, edit: 1, manual: 1 });
    const nodes = path.view().nodes;
    const node = nodes[chance.int(nodes.length)];
    if (op === "fork" && node !== undefined) path.leaf = node.seq;
    if (op === "pin" && node !== undefined) {
      setPinned(host, node.seq, true);
      pins.add(node.message.id);
    }
    const last = nodes.at(-1);
    if (op === "edit" && last?.message.role === "assistant" && last.seq === path.leaf) {
      // The newer call may be gone with it.
      path.replace(anyAnswer(chance, last.message.id));
    }
    if (op === "manual") isOld = (output) => String(output).startsWith("[Cleared");
    if (op !== "go") requests.clear();
    path.add(user(`u${turn}`, `ask ${turn}`));
    const before = sent();
    const row = op === "manual" ? compactor.prune(job) : compactor.tidy(job);
    // Undone, it is what it was, to the byte; and done again, what it has become.
    const again = () => (op === "manual" ? compactor.prune(job) : compactor.tidy(job));
    if (row !== undefined) {
      pruned++;
      checkUndo(row.id, before, again);
      requests.clear();
    }
    check();
    // Without a row, a request begins as the one before it did.
    const request = sent();
    const parent = [...requests.values()].at(-1);
    expect(parent === undefined ? undefined : request.slice(0, parent.length)).toEqual(parent);
    requests.set(path.leaf, request);
    path.add(anyAnswer(chance, `a${turn}`));
    expect(readMessage(host, `a${turn}`)).toBeDefined();
    check();
  }
  expect(pruned).toBeGreaterThan(0);
});
