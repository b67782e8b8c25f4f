import { loadAgentFile } from "./agent-directory-load.ts";
import { type FoundAgents, type LoadedFile, nameAgents } from "./agent-directory-names.ts";
import { directoryPath, scanAgents } from "./agent-directory-scan.ts";

/**
 * Loads the agents of a directory: `agents/*.ts` and `agents/<name>/agent.ts` are agents, and what lies in
 * `agents/<name>/agents/` are sub-agents of that one, to any depth. For servers of your own: hand `agents` and
 * `subAgents` to `createHost()`.
 * @param dir relative to the working directory, or a `file:` URL.
 * @throws PerdureError `bad_config`: no such directory, nothing in it, a file that does not load or has no agent, names
 *   that clash. The message names the files.
 */
export async function findAgents(dir: string | URL): Promise<FoundAgents> {
  const files: LoadedFile[] = [];
  // One after the other: which of several mistakes is reported must not depend on luck.
  for (const one of scanAgents(directoryPath(dir))) files.push({ ...one, cls: await loadAgentFile(one.file) });
  return nameAgents(files);
}
