import { PerdureError } from "../../base/error.ts";
import { loadAll, type SkillFolder } from "./load-all.ts";
import { MAX_RESOURCE_BYTES } from "./read-skill.ts";
import type { SkillSource } from "./types.ts";

/** One object of a bucket. */
export interface BucketObject {
  readonly key: string;
  readonly size: number;
  /** Changes with the content. `uploaded` is used without it. */
  readonly etag?: string;
  readonly uploaded?: Date | number | string;
}

/** The part of an object store that skills need. Stores with more methods fit too. */
export interface SkillBucket {
  list(options: { readonly prefix: string; readonly cursor?: string }): Promise<{
    readonly objects: readonly BucketObject[];
    readonly truncated?: boolean;
    readonly cursor?: string;
  }>;
  get(key: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | Uint8Array | null | undefined>;
}

const MAX_OBJECTS = 20_000;

/** Skills in a bucket: `<prefix><skill>/SKILL.md` and what lies beside it. Looked at again before every turn. */
export function bucketSource(bucket: SkillBucket, options: { readonly prefix?: string } = {}): SkillSource {
  const prefix = options.prefix === undefined || options.prefix === "" ? "" : `${options.prefix.replace(/\/+$/, "")}/`;
  const id = `bucket ${prefix}`.trim();
  const listing = async (): Promise<BucketObject[]> => {
    const found: BucketObject[] = [];
    let cursor: string | undefined;
    do {
      const page = await bucket.list({ prefix, ...(cursor !== undefined && { cursor }) });
      found.push(...page.objects.filter(({ key }) => key.startsWith(prefix)));
      cursor = page.truncated === true ? page.cursor : undefined;
    } while (cursor !== undefined && found.length < MAX_OBJECTS);
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  };
  return {
    id,
    async fingerprint() {
      return JSON.stringify((await listing()).map(({ key, size, etag, uploaded }) => [key, size, etag ?? uploaded]));
    },
    async load() {
      const folders = new Map<string, BucketObject[]>();
      for (const object of await listing()) {
        const [name = "", ...rest] = object.key.slice(prefix.length).split("/");
        // Objects beside the skills, and the empty ones that stand for directories.
        if (rest.length === 0 || rest.at(-1) === "") continue;
        folders.set(name, [...(folders.get(name) ?? []), object]);
      }
      return loadAll(
        id,
        [...folders].map(([name, objects]) => folderOf(bucket, `${prefix}${name}/`, name, objects)),
      );
    },
  };
}

function folderOf(bucket: SkillBucket, start: string, name: string, objects: readonly BucketObject[]): SkillFolder {
  return {
    name,
    files: objects.map(({ key, size }) => ({ path: key.slice(start.length), size })),
    async read(path) {
      const got = await bucket.get(`${start}${path}`);
      if (got === null || got === undefined) throw new PerdureError("not_found", `The file "${path}" is gone.`);
      const bytes = got instanceof Uint8Array ? got : new Uint8Array(await got.arrayBuffer());
      if (bytes.length > MAX_RESOURCE_BYTES) throw new PerdureError("limit", `The file "${path}" is too large.`);
      return bytes;
    },
  };
}
