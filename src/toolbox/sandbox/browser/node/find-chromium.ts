import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findOutside, isOpenToAll } from "../../process/node/programs.ts";

/** A browser's program. */
export interface ChromiumProgram {
  readonly path: string;
  /** What a jail must see beside it, if it is not in `/usr`. */
  readonly folder: string | undefined;
}

const SYSTEM = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
];
const INSTALL =
  "Install Chromium (Debian: apt-get install chromium), or give `executablePath` or CHROME_PATH the path of one.";

/** Where Chromium is. @returns the program, or what is missing */
export async function findChromium(
  given: string | undefined,
  jailed: boolean,
): Promise<ChromiumProgram | { readonly missing: string }> {
  const named = given ?? process.env.CHROME_PATH;
  const candidates = named === undefined ? [...SYSTEM, ...(await playwrightPrograms())] : [named];
  for (const candidate of candidates) {
    const found = await findOutside("chromium", candidate);
    if (found === undefined) continue;
    return jailed ? await forJail(found) : { path: await behindScript(found), folder: undefined };
  }
  if (named === undefined) return { missing: `There is no Chromium here. ${INSTALL}` };
  return { missing: `There is no program that can be run at the path that was given for Chromium. ${INSTALL}` };
}

async function forJail(found: string): Promise<ChromiumProgram | { readonly missing: string }> {
  const path = await realpath(await behindScript(found));
  if (process.getuid?.() === 0 && !(await isOpenToAll(path))) {
    return {
      missing: "The jail's user may not run that Chromium: its file, or a folder that it is in, is open to root only.",
    };
  }
  if (path.startsWith("/usr/")) return { path, folder: undefined };
  const folder = dirname(path);
  const shared = [tmpdir(), "/tmp", "/var/tmp", homedir()];
  // All of the folder is visible inside.
  if (folder.split("/").length < 3 || shared.includes(folder)) {
    return { missing: "That Chromium is in a folder with other things in it. Put it into one of its own." };
  }
  return { path, folder };
}

/** Debian's program is a script that reads settings of the machine; the browser is elsewhere. */
async function behindScript(path: string): Promise<string> {
  const real = "/usr/lib/chromium/chromium";
  if (!path.startsWith("/usr/bin/chromium") || (await stat(real).catch(() => undefined)) === undefined) return path;
  const { size } = await stat(path);
  return size < 100_000 && (await readFile(path, "latin1")).startsWith("#!") ? real : path;
}

async function playwrightPrograms(): Promise<string[]> {
  const cache = process.env.PLAYWRIGHT_BROWSERS_PATH ?? join(homedir(), ".cache", "ms-playwright");
  const names = await readdir(cache).catch(() => []);
  return names
    .filter((name) => name.startsWith("chromium"))
    .toSorted()
    .toReversed()
    .flatMap((name) =>
      ["chrome-linux64/chrome", "chrome-linux/chrome", "chrome-linux/headless_shell"].map((file) =>
        join(cache, name, file),
      ),
    );
}
