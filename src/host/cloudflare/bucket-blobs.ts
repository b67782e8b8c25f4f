import { sha256 } from "../../base/hash.ts";
import type { Blobs } from "../../port.ts";
import type { Bucket } from "./platform.ts";

/** Where an agent's blobs are in a bucket. Ids may be longer than keys. */
const prefixOf = async (id: string): Promise<string> => `perdure/${await sha256(new TextEncoder().encode(id))}/`;

/** An agent's large bytes in a bucket. @param wrote something was stored */
export function bucketBlobs(bucket: Bucket, id: string, wrote: () => void): Blobs {
  const keyOf = async (name: string) => (await prefixOf(id)) + name;
  return {
    async put(given) {
      // Its owner may change it while it is hashed.
      const bytes = given.slice();
      const name = await sha256(bytes);
      // First, so that whoever deletes the agent finds that there is one.
      wrote();
      await bucket.put(await keyOf(name), bytes);
      return name;
    },
    async get(name) {
      const found = await bucket.get(await keyOf(name));
      return found === null ? undefined : new Uint8Array(await found.arrayBuffer());
    },
    async delete(name) {
      await bucket.delete(await keyOf(name));
    },
  };
}

/** Deletes all blobs of an agent. */
export async function emptyBucket(bucket: Bucket, id: string): Promise<void> {
  const prefix = await prefixOf(id);
  for (;;) {
    const { objects } = await bucket.list({ prefix });
    if (objects.length === 0) return;
    await bucket.delete(objects.map(({ key }) => key));
  }
}
