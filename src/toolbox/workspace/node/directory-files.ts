import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { LargeFiles } from "../large-files.ts";

/** No other name can be of a large file, nor leave the directory. */
const NAME = /^[0-9a-f]+\/[A-Za-z0-9_.-]+\/[0-9a-f]{64}$/;

/** What agents keep is for the user that they run as. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Large files below a directory, which is made when the first one is stored. */
export function openDirectoryFiles(directory: string): LargeFiles {
  const root = resolve(directory);
  const fileOf = (name: string) => {
    if (!NAME.test(name) || name.includes("..")) throw new Error(`"${name}" is no name of a large file.`);
    return join(root, name);
  };
  return {
    async put(name, bytes) {
      const file = fileOf(name);
      const folder = dirname(file);
      await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      // Always the same: what a crash leaves of it is written over, or deleted with the file.
      const draft = draftOf(file);
      const handle = await open(draft, "w", FILE_MODE);
      try {
        await handle.writeFile(bytes);
        await handle.datasync();
      } finally {
        await handle.close();
      }
      await rename(draft, file);
      const opened = await open(folder, "r");
      await opened.sync().finally(() => opened.close());
    },
    async get(name) {
      try {
        return new Uint8Array(await readFile(fileOf(name)));
      } catch (thrown) {
        if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
        throw thrown;
      }
    },
    async delete(name) {
      const file = fileOf(name);
      await Promise.all([file, draftOf(file)].map((one) => rm(one, { force: true })));
    },
  };
}

function draftOf(file: string): string {
  return `${file}.draft`;
}
