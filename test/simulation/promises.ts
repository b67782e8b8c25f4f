// What must hold at the end of every run, whatever went wrong in it.
import { type Facts, factsOf } from "./facts.ts";
import { boardPromises } from "./promises-board.ts";
import { chatPromises } from "./promises-chat.ts";
import { toolPromises } from "./promises-tools.ts";
import type { Tab } from "./tab.ts";
import type { World } from "./world.ts";

/** Is told of a promise that is broken. */
export type Say = (words: string) => void;

/** The promises that are broken, in words. Everything is at rest, and all tabs are connected. */
export function brokenPromises(world: World, tabs: readonly Tab[]): string[] {
  const broken: string[] = [];
  const say: Say = (words) => void broken.push(words);
  const all = new Map<string, Facts>(world.disk.agents.map((agent) => [agent, factsOf(world.disk, agent)]));
  boardPromises(world, all, tabs, say);
  for (const facts of all.values()) {
    if (facts.turns.length === 0) continue;
    chatPromises(world, facts, tabs, say);
    toolPromises(world, facts, all, say);
  }
  for (const { agent, request } of world.record.accepted.values()) {
    const known = all.get(agent)?.turns.some(({ id }) => id === request) === true;
    if (!known && !world.record.touched.has(agent)) say(`${agent}: turn ${request} was accepted and is lost`);
  }
  return broken;
}
