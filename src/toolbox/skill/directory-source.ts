import { loadAll } from "./load-all.ts";
import type { SkillSource } from "./types.ts";

/**
 * Skills in a directory, one directory for each. Looked at again before every turn, so that edits are seen. Links that
 * lead out of a skill are refused. Needs Node. A directory that is not there makes the source fail, with a warning.
 */
export function directorySource(path: string): SkillSource {
  const id = `directory ${path}`;
  const list = async () => (await import("./node/read-directory.ts")).listDirectory(path);
  return {
    id,
    fingerprint: async () => (await list()).fingerprint,
    load: async () => loadAll(id, (await list()).folders),
  };
}
