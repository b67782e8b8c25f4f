import type { AgentHost } from "../port.ts";
import { bodiesAfter, isNamedBesideMessages } from "../store/erase.ts";

/** Rows that are looked at before others have their turn. */
const SLICE_ROWS = 16;

/** Names of files are SHA-256 in hex. */
export const FILE_NAMES = /[0-9a-f]{64}/g;

/** Which of these files no row of the framework names any more. Looks at all messages, with others having their turn. */
export async function unnamedFiles(
  host: Pick<AgentHost, "sql" | "tx" | "breathe">,
  names: readonly string[],
): Promise<Set<string>> {
  const left = new Set(names.filter((name) => !isNamedBesideMessages(host, name)));
  for (let after = 0; left.size > 0;) {
    const rows = bodiesAfter(host, after, SLICE_ROWS);
    for (const { body } of rows) for (const [name] of body.matchAll(FILE_NAMES)) left.delete(name);
    const last = rows.at(-1)?.seq;
    if (last === undefined) break;
    after = last;
    await host.breathe();
  }
  return left;
}
