import { access, constants } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isWayOpenToAll } from "./programs.ts";

/** The last is memory, and can be written to where the root file system cannot. */
const usual = () => [tmpdir(), "/tmp", "/var/tmp", "/dev/shm"];

/**
 * The first writable folder for temporary files, or undefined.
 * @param forAll it must be one that every user of the machine can go through: root's own may be closed to the user of a jail.
 */
export async function temporaryFolder(forAll: boolean, candidates = usual()): Promise<string | undefined> {
  for (const path of candidates) if ((await isWritable(path)) && (!forAll || (await isWayOpenToAll(path)))) return path;
  return undefined;
}

async function isWritable(path: string): Promise<boolean> {
  return await access(path, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}
