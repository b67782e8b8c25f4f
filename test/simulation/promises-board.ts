// What boards promise: what was acknowledged is there, what was planned has been done, in order, once where that is said.
import { FIBER_STEPS } from "./agents.ts";
import type { Facts } from "./facts.ts";
import type { Say } from "./promises.ts";
import type { Tab } from "./tab.ts";
import type { World } from "./world.ts";

/** What callbacks that take their time have written: a crash in the middle lets them do so again. */
const REPEATED = new Set(["ringLate", "link"]);

export function boardPromises(
  { record }: World,
  all: ReadonlyMap<string, Facts>,
  tabs: readonly Tab[],
  say: Say,
): void {
  const times = (agent: string, kind: string, key: string) =>
    all.get(agent)?.done.filter((row) => row.kind === kind && row.key === key).length ?? 0;
  for (const { agent, kind, key } of record.acks) {
    const there = (what: string, name = key) => {
      if (times(agent, what, name) === 0)
        say(`${agent}: ${kind} ${key} was acknowledged, and ${what} ${name} is not there`);
    };
    if (kind === "add") there("add");
    if (kind === "addLate") for (const part of [1, 2]) there("late", `${key}.${part}`);
    if (kind === "plan") there("ring");
    if (kind === "planAsync") there("ringLate");
    if (kind === "enqueue") there("work");
    if (kind === "hand") checkHanded(all.get(agent), key, record.touched.has(agent), say);
    if (kind === "chain") for (const left of [2, 1, 0]) there("link", `${key}.${left}`);
    if (kind === "spawn") for (let step = 0; step < FIBER_STEPS; step++) there("step", `${key}.${step}`);
    if (kind === "row" && !all.get(agent)?.rows.some((row) => row.key === key))
      say(`${agent}: the receipt for row ${key} was shown, and the row is not there`);
    const [, leaf = ""] = kind.split(" ");
    const below = `${agent}/Leaf/${leaf}`;
    if (kind.startsWith("below") && !record.touched.has(below) && times(below, "add", key) === 0)
      say(`${below}: ${key} was acknowledged and is not there`);
  }
  for (const facts of all.values()) if (facts.done.length > 0) checkCounts(facts, record.delivered, say);
  for (const [agent, states] of record.states) {
    if (agent.startsWith("Sheet")) {
      checkSheet(agent, all.get(agent)?.state, states, tabs, say);
      continue;
    }
    const sum = all.get(agent)?.done.filter(({ kind }) => kind === "add").length ?? 0;
    for (const { n, mark } of states) {
      if (n > 0 && times(agent, "add", mark) === 0) say(`${agent}: the state of ${mark} was shown and undone`);
      if (n > sum) say(`${agent}: the state ${n} was shown, and there are ${sum} changes`);
    }
    for (const tab of tabs) {
      if (tab.agent === agent && tab.connected && (tab.state?.n ?? 0) !== sum)
        say(`${tab.name} shows the state ${tab.state?.n} of ${agent} in the end, not ${sum}`);
    }
  }
}

const HANDED_ENDS = new Set(["completed", "aborted", "skipped", "error"]);

/** What was handed in has come to an end, and is in the conversation if that was a good one. */
function checkHanded(facts: Facts | undefined, key: string, isTouched: boolean, say: Say): void {
  const [handed] = facts?.submissions.filter((one) => one.key === key) ?? [];
  if (handed === undefined) return say(`${facts?.agent}: ${key} was acknowledged as handed in, and is not there`);
  if (!HANDED_ENDS.has(handed.status)) say(`${facts?.agent}: what was handed in as ${key} is left ${handed.status}`);
  if (handed.status === "completed" && !isTouched && !facts?.messages.has(`m${key}`))
    say(`${facts?.agent}: what was handed in as ${key} is completed, and its message is not there`);
}

/** What clients set is what all of them show. */
function checkSheet(
  agent: string,
  stored: string | undefined,
  states: readonly unknown[],
  tabs: readonly Tab[],
  say: Say,
) {
  const mark = stored === undefined ? "" : (JSON.parse(stored) as { mark: string }).mark;
  if (stored === undefined && states.some((state) => JSON.stringify(state).includes('"s')))
    say(`${agent}: a state was shown, and none is stored`);
  for (const tab of tabs) {
    if (tab.agent === agent && tab.connected && (tab.state?.mark ?? "") !== mark)
      say(`${tab.name} shows the state ${tab.state?.mark} of ${agent} in the end, not ${mark}`);
  }
}

/** What is done in one commit with its end is done as often as it was asked for, never more. */
function checkCounts({ agent, done, rows }: Facts, delivered: ReadonlyMap<string, number>, say: Say): void {
  const groups = Map.groupBy(done, ({ kind, key }) => `${kind} ${key}`);
  for (const [name, { length }] of groups) {
    const [kind = "", key = ""] = name.split(" ");
    const [call = ""] = key.split(".");
    const asked = kind === "step" ? 1 : (delivered.get(call) ?? 1);
    if (!REPEATED.has(kind) && length > asked)
      say(`${agent}: ${name} is there ${length} times, asked for ${asked} times`);
  }
  const order = (kind: string) => [...new Set(done.filter((row) => row.kind === kind).map(({ key }) => key))];
  const worked = order("work");
  const queued = order("queued").filter((key) => worked.includes(key));
  if (queued.join() !== worked.join()) say(`${agent}: queued ${queued.join()}, done ${worked.join()}`);
  for (const { key, version } of rows) if (version !== 1) say(`${agent}: row ${key} was written ${version} times`);
}
