import { execFile, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Removes a folder that a guest has filled. Node's `rm` fails on paths beyond the length limit, names that are no text, and
 * locked folders; the system's programs do not. Never rejects; what cannot be removed stays.
 */
export async function removeTree(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
  if (await isGone(folder)) return;
  // The guest's environment has no part in this, and a folder of that name begins with a slash.
  const options = { env: {}, cwd: "/" };
  await run("/bin/chmod", ["-R", "u+rwX", folder], options).catch(() => undefined);
  await run("/bin/rm", ["-rf", folder], options).catch(() => undefined);
}

/** The same for the end of the process, where nothing can wait. Never throws. */
export function removeTreeNow(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    spawnSync("/bin/rm", ["-rf", folder], { env: {}, cwd: "/" });
  }
}

async function isGone(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    () => true,
  );
}
