import type { Agent } from "./agent.ts";
import { currentAgent, type Current } from "../parts/current.ts";

/** Who is running now, and for whom. */
export type CurrentAgent<T extends Agent<object> = Agent<object>> = Current<T>;

/** The agent that the calling code runs for, across awaits, with its connection and request. All undefined outside an agent. */
export function getCurrentAgent<T extends Agent<object> = Agent<object>>(): CurrentAgent<T> {
  return currentAgent() as unknown as CurrentAgent<T>;
}
