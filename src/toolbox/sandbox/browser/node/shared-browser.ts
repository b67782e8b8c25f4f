import { chmod, mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserType } from "playwright-core";
import { errorText, PerdureError } from "../../../../base/error.ts";
import type { Probe } from "../../sandbox.ts";
import { prepareMachine } from "../../process/node/machine.ts";
import { temporaryFolder } from "../../process/node/temporary-folder.ts";
import type { BrowserEgress, BrowserSettings } from "../browser-options.ts";
import { type BrowserJail, jailProxy, makeBrowserJail, SLOTS } from "./browser-jail.ts";
import { findChromium } from "./find-chromium.ts";

/** A browser with some sessions in it. */
export type SharedBrowser = ReturnType<typeof shareBrowser>;
/** One session's place in a browser. */
export type BrowserSlot = Awaited<ReturnType<SharedBrowser["enter"]>>;

/** Nothing listens there: what Chromium asks for itself, outside of any session, goes nowhere. */
const NOWHERE = "http://127.0.0.1:9";
const LAUNCH_MS = 60_000;
const CHROMIUM_ARGUMENTS = [
  "--disable-gpu",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  // Names are for the egress to resolve, never for the browser.
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
];
const PROGRAMS = { programs: {}, runAs: { uid: 65_534, gid: 65_534 }, cgroup: undefined, temporary: undefined };

async function playwright(): Promise<BrowserType | undefined> {
  return await import("playwright-core").then(
    ({ chromium }) => chromium,
    () => undefined,
  );
}

const NO_PLAYWRIGHT = "The package playwright-core is not installed. Install it: npm install playwright-core.";

/** Whether a browser could be started here. Starts none. Never throws. */
export async function probeChromium(settings: Pick<BrowserSettings, "executablePath" | "jail">): Promise<Probe> {
  try {
    if ((await playwright()) === undefined) return { ok: false, missing: NO_PLAYWRIGHT };
    const jailed = settings.jail === "bubblewrap";
    const program = await findChromium(settings.executablePath, jailed);
    if ("missing" in program) return { ok: false, missing: program.missing };
    if (!jailed) return { ok: true, detail: "Chromium without a jail" };
    const machine = await prepareMachine(PROGRAMS);
    if ("missing" in machine)
      return { ok: false, missing: `${machine.missing} (\`jail: "none"\` does without, and is weaker.)` };
    await machine.remove();
    if (machine.socat === undefined || machine.bash === undefined) {
      const name = machine.socat === undefined ? "socat" : "bash";
      return { ok: false, missing: `There is no program "${name}" here. Install the package ${name}.` };
    }
    return { ok: true, detail: `Chromium in a jail; ${machine.detail.split("; ").slice(0, 2).join("; ")}` };
  } catch (thrown) {
    return { ok: false, missing: errorText(thrown) };
  }
}

/** Starts one. @throws PerdureError `bad_config` for what is missing */
export async function startBrowser(settings: BrowserSettings): Promise<SharedBrowser> {
  const chromium = await playwright();
  if (chromium === undefined) throw new PerdureError("bad_config", NO_PLAYWRIGHT);
  const jailed = settings.jail === "bubblewrap";
  const program = await findChromium(settings.executablePath, jailed);
  if ("missing" in program) throw new PerdureError("bad_config", program.missing);
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).toReversed()) await close().catch(() => undefined);
  };
  try {
    const jail = jailed ? await openJail(program, closers) : undefined;
    const home = (await temporaryFolder(false)) ?? tmpdir();
    // Playwright makes folders where the system says, and cannot be told otherwise. Nobody else can use that place either.
    if (home !== tmpdir()) process.env.TMPDIR = home;
    const browser = await chromium.launch({
      executablePath: jail?.executablePath ?? program.path,
      headless: true,
      // Chromium refuses to build its own sandbox as root; in the jail it never is.
      chromiumSandbox: jailed || process.getuid?.() !== 0,
      env: jailed ? {} : { PATH: "/usr/bin:/bin", HOME: home, TMPDIR: home },
      args: CHROMIUM_ARGUMENTS,
      proxy: { server: NOWHERE, bypass: "<-loopback>" },
      timeout: LAUNCH_MS,
      ...{ handleSIGHUP: false, handleSIGINT: false, handleSIGTERM: false },
    });
    closers.push(async () => await browser.close());
    const watched = await jail?.watch(settings.memoryMB, () => void closeAll());
    if (watched !== undefined) {
      closers.push(async () => {
        watched.stop();
        await Promise.resolve(watched.kill());
      });
    }
    return shareBrowser(browser, jail, closers, closeAll);
  } catch (thrown) {
    await closeAll();
    if (PerdureError.is(thrown)) throw thrown;
    throw new PerdureError("call_failed", `The browser did not start: ${errorText(thrown).split("\n")[0]}`, {
      cause: thrown,
    });
  }
}

async function openJail(
  program: Parameters<typeof makeBrowserJail>[1],
  closers: (() => Promise<void>)[],
): Promise<BrowserJail> {
  const machine = await prepareMachine({ ...PROGRAMS, filter: { namespaces: true, uncountedMemory: true } });
  if ("missing" in machine) throw new PerdureError("bad_config", machine.missing);
  closers.push(async () => await machine.remove());
  if (machine.socat === undefined || machine.bash === undefined) {
    throw new PerdureError("bad_config", "A jailed browser needs the programs socat and bash. Install them.");
  }
  return await makeBrowserJail(machine, program);
}

function shareBrowser(
  browser: Browser,
  jail: BrowserJail | undefined,
  closers: (() => Promise<void>)[],
  close: () => Promise<void>,
) {
  const taken = new Set<number>();
  /** Settles when it has ended, by itself or not. */
  const ended = new Promise<void>((resolve) => {
    browser.once("disconnected", () => {
      void close();
      resolve();
    });
  });
  let folder: Promise<string> | undefined;
  const openFolder = async () => {
    const made = await mkdtemp(join((await temporaryFolder(false)) ?? tmpdir(), "perdure-browser-"));
    closers.push(async () => await rm(made, { recursive: true, force: true }));
    return made;
  };
  return {
    ended,
    close,
    hasRoom: () => browser.isConnected() && taken.size < SLOTS,
    isEmpty: () => taken.size === 0,
    async enter(egress: BrowserEgress) {
      const slot = Array.from({ length: SLOTS }, (_, index) => index).find((index) => !taken.has(index));
      if (slot === undefined) throw new PerdureError("limit", "This browser has no room for another session.");
      taken.add(slot);
      try {
        const path = jail?.socketPath(slot) ?? join(await (folder ??= openFolder()), `${slot}`);
        let using = egress;
        let listening = await listen(egress, path);
        const bridge = jail === undefined ? await bridgeTo(path) : undefined;
        const context = await browser.newContext({
          proxy: { server: bridge?.url ?? jailProxy(slot), bypass: "<-loopback>" },
          ...{
            serviceWorkers: "block",
            acceptDownloads: false,
            permissions: [],
            viewport: { width: 1_280, height: 800 },
          },
        });
        return {
          context,
          /** From now on its requests go through another egress. */
          async use(other: BrowserEgress): Promise<void> {
            if (other === using) return;
            await listening.close();
            await rm(path, { force: true });
            listening = await listen(other, path);
            using = other;
          },
          /** Closes its pages and forgets its cookies. Never throws. */
          async leave(): Promise<void> {
            await context.close().catch(() => undefined);
            bridge?.server.close();
            await listening.close().catch(() => undefined);
            await rm(path, { force: true }).catch(() => undefined);
            taken.delete(slot);
          },
        };
      } catch (thrown) {
        taken.delete(slot);
        throw thrown;
      }
    },
  };
}

async function listen(egress: BrowserEgress, path: string): Promise<{ close(): Promise<void> }> {
  await rm(path, { force: true });
  const listening = await egress.listen(path);
  // The jail's user connects to it. No other user can come this far.
  await chmod(path, 0o777);
  return listening;
}

/** Without a jail the browser needs a port of this machine: others on it could use what is allowed, too. */
async function bridgeTo(path: string): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((socket) => {
    const upstream = connect(path);
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("The bridge has no port.");
  return { server, url: `http://127.0.0.1:${address.port}` };
}
