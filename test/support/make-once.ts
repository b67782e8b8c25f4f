import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a folder unless it is there. Several processes may ask at the same time: each makes one of its own and the
 * first moves it into place whole, so nobody ever sees half of it.
 */
export async function makeOnce(home: string, make: (part: string) => Promise<unknown>): Promise<string> {
  if (existsSync(home)) return home;
  await mkdir(dirname(home), { recursive: true });
  const part = await mkdtemp(`${home}-`);
  try {
    await make(part);
    await rename(part, home);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    if (!existsSync(home)) throw error;
  }
  return home;
}
