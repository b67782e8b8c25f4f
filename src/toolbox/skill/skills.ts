import { PerdureError } from "../../base/error.ts";
import { bucketSource, type SkillBucket } from "./bucket-source.ts";
import { loadAll } from "./load-all.ts";
import { manifestSource, type SkillManifest } from "./manifest-source.ts";
import { createSkillRunner, type SkillRunnerOptions } from "./runner.ts";
import type { SkillScriptRunner, SkillSource } from "./types.ts";

/** Where skills come from, and what runs their scripts. */
export const skills = {
  /** One directory for each skill, such as `skills/release-notes/SKILL.md`. Needs Node. */
  fromDirectory: (path: string): SkillSource => directorySource(path),
  /** Skills as a JSON value that is part of the program. */
  fromManifest: (manifest: SkillManifest): SkillSource => manifestSource(manifest),
  /** Skills in an object store, below `prefix`. */
  fromBucket: (bucket: SkillBucket, options: { readonly prefix?: string } = {}): SkillSource =>
    bucketSource(bucket, options),
  /** Of the public packages: here it is `fromBucket`, with the same arguments. @deprecated */
  r2: (..._bucket: never[]): never => {
    throw new PerdureError("bad_config", "There is no skills.r2(). Use skills.fromBucket(bucket, { prefix }).");
  },
  /** What runs scripts: without one, skills are instructions and files only. */
  runner: (options: SkillRunnerOptions = {}): SkillScriptRunner => createSkillRunner(options),
};

/**
 * Skills in a directory, one directory each, re-read before every turn. Links that lead out of a skill are refused. Needs Node.
 * If the directory is missing, the source fails, with a warning.
 */
function directorySource(path: string): SkillSource {
  const id = `directory ${path}`;
  const list = async () => (await import("./node/read-directory.ts")).listDirectory(path);
  return {
    id,
    fingerprint: async () => (await list()).fingerprint,
    load: async () => loadAll(id, (await list()).folders),
  };
}
