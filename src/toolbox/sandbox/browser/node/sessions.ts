import type { Probe } from "../../sandbox.ts";
import type { BrowserEgress, BrowserSettings } from "../browser-options.ts";
import { PagesOfSession } from "./browser-session.ts";
import { probeChromium, type SharedBrowser, startBrowser } from "./shared-browser.ts";

/** A browser that nobody uses waits this long for the next session. */
const LINGER_MS = 30_000;

const browsers = new Map<string, Promise<SharedBrowser>[]>();
const probes = new Map<string, Promise<Probe>>();

/** Whether a browser can be started here. A yes is kept; a no is looked at again. Never throws. */
export async function probe(settings: BrowserSettings): Promise<Probe> {
  const key = `${settings.jail} ${settings.executablePath ?? ""} ${process.env.CHROME_PATH ?? ""}`;
  const found = probes.get(key) ?? probeChromium(settings);
  probes.set(key, found);
  const result = await found;
  if (!result.ok) probes.delete(key);
  return result;
}

/** By keys that name the owner, too: nobody gets at a session by a name that another has chosen. */
const sessions = new Map<string, Promise<PagesOfSession>>();

/** The session of that key: the one that is there, or a new one. @throws PerdureError when no browser can be started */
export async function sessionOf(
  key: string,
  settings: BrowserSettings,
  egress: BrowserEgress,
): Promise<PagesOfSession> {
  for (;;) {
    const opening = sessions.get(key) ?? openSession(key, settings, egress);
    sessions.set(key, opening);
    let session: PagesOfSession;
    try {
      session = await opening;
    } catch (thrown) {
      if (sessions.get(key) === opening) sessions.delete(key);
      throw thrown;
    }
    if (session.closed) {
      if (sessions.get(key) === opening) sessions.delete(key);
      continue;
    }
    await session.use(egress);
    return session;
  }
}

/** Closes a session, if it is there. */
export async function closeSession(key: string): Promise<void> {
  const session = await sessions.get(key)?.catch(() => undefined);
  await session?.close(undefined);
}

/** Closes all sessions and ends all browsers of this process. Never throws. */
export async function closeAll(): Promise<void> {
  await Promise.all([...sessions.keys()].map(closeSession));
  const all = [...browsers.values()].flat();
  await Promise.allSettled(all.map(async (starting) => await (await starting).close()));
}

async function openSession(key: string, settings: BrowserSettings, egress: BrowserEgress): Promise<PagesOfSession> {
  const browser = await browserFor(settings);
  const slot = await browser.enter(egress);
  const session = new PagesOfSession(slot, egress, settings, () => {
    sessions.delete(key);
    const timer = setTimeout(
      () => {
        if (browser.isEmpty()) void browser.close();
      },
      settings.ownBrowser ? 0 : LINGER_MS,
    );
    timer.unref();
  });
  void browser.ended.then(async () => await session.close(undefined));
  return session;
}

/** One browser for all sessions that want the same; another one when it is full. */
async function browserFor(settings: BrowserSettings): Promise<SharedBrowser> {
  if (settings.ownBrowser) return await startBrowser(settings);
  const key = `${settings.jail} ${settings.executablePath ?? ""} ${settings.memoryMB}`;
  const list = browsers.get(key) ?? [];
  browsers.set(key, list);
  for (const starting of list) {
    const browser = await starting.catch(() => undefined);
    if (browser?.hasRoom() === true) return browser;
  }
  const starting = startBrowser(settings);
  list.push(starting);
  const drop = () => void list.splice(list.indexOf(starting) >>> 0, 1);
  try {
    const browser = await starting;
    void browser.ended.then(drop);
    return browser;
  } catch (thrown) {
    drop();
    throw thrown;
  }
}
