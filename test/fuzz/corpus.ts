import { readdirSync, readFileSync } from "node:fs";
import type { Sent } from "./routes.ts";

/** What was once sent: to which agents, what kind of thing it is, and the frames and requests themselves. */
export interface Kept {
  readonly what: string;
  /** Paths of agents; each is sent all of it. */
  readonly to: readonly string[];
  readonly frames?: readonly string[];
  readonly requests?: readonly Sent[];
}

/** All that is kept, by the name of its file. */
export function corpus(): readonly (readonly [string, Kept])[] {
  const folder = new URL("./corpus/", import.meta.url);
  return readdirSync(folder).map((name) => [name, JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Kept]);
}
