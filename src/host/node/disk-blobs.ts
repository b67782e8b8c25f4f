import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Blobs } from "../../port.ts";
import { FILE_MODE, FOLDER_MODE } from "./private-files.ts";
import { syncDirectory } from "./wal-sync.ts";

/** No other name can be of a blob, nor leave the directory. */
const NAME = /^[0-9a-f]{64}$/;

/** One agent's large bytes, a file each, named by their SHA-256. */
export function diskBlobs(dir: string): Blobs {
  const fileOf = (name: string) => path.join(dir, name);
  let ready: Promise<void> | undefined;
  const prepare = async (): Promise<void> => {
    try {
      await fs.promises.mkdir(dir, { recursive: true, mode: FOLDER_MODE });
      const parent = path.dirname(dir);
      await Promise.all([syncDirectory(parent), syncDirectory(path.dirname(parent))]);
    } catch (thrown) {
      ready = undefined;
      throw thrown;
    }
  };
  return {
    async put(bytes) {
      const name = blobName(bytes);
      const file = fileOf(name);
      if (fs.existsSync(file)) return name;
      await (ready ??= prepare());
      const draft = path.join(dir, `${randomUUID()}.draft`);
      const handle = await fs.promises.open(draft, "wx", FILE_MODE);
      try {
        await handle.writeFile(bytes);
        await handle.datasync();
      } finally {
        await handle.close();
      }
      await fs.promises.rename(draft, file);
      await syncDirectory(dir);
      return name;
    },
    async get(name) {
      if (!NAME.test(name)) return undefined;
      try {
        return await fs.promises.readFile(fileOf(name));
      } catch (thrown) {
        if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
        throw thrown;
      }
    },
    async delete(name) {
      if (NAME.test(name)) await fs.promises.rm(fileOf(name), { force: true });
    },
  };
}

/** Blobs of a host that keeps everything in memory. */
export function memoryBlobs(): Blobs {
  const blobs = new Map<string, Uint8Array>();
  return {
    put(bytes) {
      const name = blobName(bytes);
      blobs.set(name, bytes.slice());
      return Promise.resolve(name);
    },
    get: (name) => Promise.resolve(blobs.get(name)?.slice()),
    delete(name) {
      blobs.delete(name);
      return Promise.resolve();
    },
  };
}

export function blobName(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
