// Conversations of chance, compacted, grown, undone: what must be true of every request.
import { modelMessageSchema } from "ai";
import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { answer, called, jobOn, measureOf, step, TestPath, text, user } from "../../test/context/paths.ts";
import { type Random, random } from "../../test/think/interleave-random.ts";
import type { Part, UIMessage } from "../message/types.ts";
import { setPinned } from "../store/message.ts";
import { Compactor } from "./compactor.ts";
import { ModelMessages } from "./model-messages.ts";
import { project } from "./view.ts";

const SEEDS = 60;
const words = (mark: string, { int }: Random) => `${mark} ${"abc ".repeat(int(400))}`;

/** An answer of some steps, each with what a model says and calls. */
function anyAnswer(id: string, chance: Random, waits: boolean): UIMessage {
  const parts: Part[] = [];
  for (let i = 0; i <= chance.int(4); i++) {
    parts.push(step);
    if (chance.chance(0.2)) parts.push({ type: "reasoning", text: words("thought", chance) });
    if (chance.chance(0.7)) parts.push(text(words(`${id}.${i}`, chance)));
    for (let n = chance.int(3); n > 0; n--)
      parts.push(called("read", `c${i}${n}`, words(`out ${id}.${i}.${n}`, chance)));
  }
  if (waits) parts.push({ type: "tool-ask", toolCallId: "w", state: "input-available", input: {} } as Part);
  return answer(id, ...parts);
}

/** What a provider would not take of a request. */
async function faultsOf(messages: readonly UIMessage[]): Promise<string[]> {
  const sent = await new ModelMessages().of(messages, {});
  const faults: string[] = [];
  const open = new Set<string>();
  for (const message of sent) {
    if (!modelMessageSchema.safeParse(message).success) faults.push(`a ${message.role} message of no known form`);
    if (typeof message.content === "string") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") open.add(part.toolCallId);
      if (part.type === "tool-result" && !open.delete(part.toolCallId)) faults.push(`no call for ${part.toolCallId}`);
    }
  }
  if (sent[0]?.role !== "user") faults.push(`it begins with ${sent[0]?.role}`);
  return [...faults, ...[...open].map((id) => `no result for ${id}`)];
}

test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("with the seed %i", async (seed) => {
  const chance = random(seed);
  const { host } = await probeHost();
  const path = new TestPath(host);
  const compactor = new Compactor(host);
  const undone: { id: string; before: string; grown: UIMessage[] }[] = [];
  const pinned: string[] = [];
  const shown = () => JSON.stringify(project(path.view()));
  let last = "";
  for (let turn = 0; turn < 12; turn++) {
    const grown = [user(`u${turn}`, words(`ask-${turn}`, chance))];
    last = `ask-${turn} `;
    const answered = turn < 11 || chance.chance(0.7);
    const waits = answered && turn === 11 && chance.chance(0.3);
    if (answered) grown.push(anyAnswer(`a${turn}`, chance, waits));
    path.add(...grown);
    for (const one of undone) one.grown.push(...grown);
    if (chance.chance(0.1)) {
      setPinned(host, path.leaf ?? 0, true);
      pinned.push(
        path
          .view()
          .nodes.at(-1)
          ?.message.parts.find((part) => part.type === "text")?.text ?? "",
      );
    }
    if (!chance.chance(0.4)) continue;
    const before = shown();
    const usable = 800 + chance.int(6_000);
    const open = chance.chance(0.5) && grown.length > 1;
    const made = await compactor.run(jobOn(path, { measure: measureOf(usable), open }));
    expect(made.ok || shown() === before).toBe(true);
    if (!made.ok) continue;
    undone.push({ id: made.row.id, before, grown: [] });
    expect(made.row.tokensAfter).toBeLessThan(0.8 * made.row.tokensBefore);
    expect(made.row.tokensAfter).toBeLessThanOrEqual(usable);
    expect(shown()).toBe(shown());
    // What is missing is named by its first words: all of it would be pages.
    const missing = [last, ...pinned, ...(waits ? ['"toolCallId":"w"'] : [])].filter((some) => !shown().includes(some));
    expect(missing.map((some) => some.slice(0, 20))).toEqual([]);
    expect(await faultsOf(project(path.view()))).toEqual([]);
  }
  // Back, one after the other: each time it is what it was, and what was said since.
  for (const { id, before, grown } of undone.reverse()) {
    compactor.undo(id, path.view(), measureOf(1_000_000));
    const since = grown.map((message) => JSON.stringify(message));
    expect(shown()).toBe(since.length === 0 ? before : `${before.slice(0, -1)},${since.join(",")}]`);
  }
});
