// An agent with a workspace, for the crash matrix.
import { parts } from "../../src/parts/part.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { Workspace } from "../../src/toolbox/workspace/workspace.ts";
import { obey, reportEvents, Watched, watchedOptions } from "../crash/watched-host.ts";
import { INLINE_LIMIT, MAX_POINTS, type Op, type Result } from "./crash-model.ts";

class Keeper extends Watched {
  readonly #workspace = new Workspace({
    host: this[parts].host,
    inlineLimit: INLINE_LIMIT,
    maxPoints: MAX_POINTS,
  });

  /** What was deleted is deleted before it returns: so every run has the same commits. */
  async act([op, a, b]: Op): Promise<void> {
    const workspace = this.#workspace;
    if (op === "write") await workspace.writeFile(a, b.repeat(Number(a.slice(1))));
    if (op === "rm") await workspace.rm(a);
    if (op === "rename") await workspace.rename(a, b);
    if (op === "mark") workspace.mark(a);
    if (op === "restore") workspace.restore(a);
    await workspace.sweep();
  }

  async result(): Promise<Result> {
    const { host } = this[parts];
    const workspace = this.#workspace;
    // As any write does.
    await workspace.sweep();
    const files: Record<string, string> = {};
    for (const { path } of await workspace.glob("/*")) {
      const text = (await workspace.readFile(path)) ?? "";
      files[path] = `${[...new Set(text)].join("")} ${text.length}`;
    }
    const rows = <T>(query: string) => host.sql<T>(query);
    return {
      files,
      points: workspace.points().flatMap(({ messageId }) => (messageId.startsWith("undo:") ? [] : [messageId])),
      counted: rows("SELECT hash, refs FROM perdure_file_body WHERE n = -1 ORDER BY hash"),
      real: rows("SELECT hash, count(*) AS refs FROM perdure_file WHERE hash IS NOT NULL GROUP BY hash ORDER BY hash"),
      large: rows("SELECT hash FROM perdure_file_body WHERE large = 1").length,
      doubts: rows("SELECT key FROM perdure_cell WHERE key LIKE 'workspace-large:%'").length,
    };
  }
}

const agents = { Keeper };
reportEvents();
const host = createHost({ agents, ...watchedOptions() });
obey(host, agents);
