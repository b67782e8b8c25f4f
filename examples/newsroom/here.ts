import { openLog } from "./log.ts";
import { agentNames, openSession } from "./session.ts";

const address = new URLSearchParams(location.search).get("session") ?? `${location.origin}/agents/newsroom/today`;

/** All that the page has: collections. What others write shows up in them, whoever and wherever they are. */
export const session = openSession(openLog(address));

const names = ["Ada", "Grace", "Katherine", "Hedy"];

/** Who sits at this page: somebody else in each tab, and the same after a reload. */
export const me: string =
  sessionStorage.getItem("me") ?? `${pick(names)}-${pick(Array.from({ length: 99 }, (_, n) => n))}`;
sessionStorage.setItem("me", me);

export function isAgent(name: string): boolean {
  return agentNames.some((agent) => agent === name);
}

function pick<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}
