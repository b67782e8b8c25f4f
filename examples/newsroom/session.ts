import { createCollection } from "@tanstack/db";
import { agentCollections, logCollectionOptions } from "perdure/collections";
import type { RowLog } from "perdure/collections";

export const agentNames = ["planner", "researcher", "writer"] as const;

/** Somebody at a page. */
export interface Person {
  readonly id: string;
  readonly typing: boolean;
}

/** All that people, agents and tools share: collections on one log, the same in the page and in every process. */
export function openSession(log: RowLog) {
  const people = createCollection(logCollectionOptions<Person>({ log, name: "people", getKey: ({ id }) => id }));
  return { ...agentCollections(log), people };
}
