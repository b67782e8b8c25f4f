// Whose pages and cookies are whose: agents on a real host, with a real browser.
import { Agent, type Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import type { BrowserToolsOptions } from "../../src/toolbox/sandbox/browser/browser-options.ts";
import {
  closeBrowsers,
  closeBrowserSession,
  createBrowserTools,
  probeBrowser,
} from "../../src/toolbox/sandbox/browser/browser-tools.ts";
import { toolParts } from "../../src/message/types.ts";
import { startHost } from "../clients/harness.ts";
import { openThink } from "../think/harness.ts";
import { callerFor, openChromium } from "./browser-suite.ts";
import { type Site, startSite } from "./site.ts";

let site: Site;
let where: Pick<BrowserToolsOptions, "executablePath" | "jail">;
beforeAll(async () => {
  site = await startSite();
  const executablePath = await openChromium();
  where = { executablePath, jail: (await probeBrowser({ executablePath })).ok ? "bubblewrap" : "none" };
});
afterAll(async () => {
  await closeBrowsers();
  site.close();
});

/** The page shows the cookie of an earlier visit, and sets one. */
const FIRST = "none";
const AGAIN = "who=me";
const cookieIn = (shown: string) => (shown.includes(AGAIN) ? AGAIN : FIRST);

class Reader extends Agent {
  async visit(session?: string) {
    const caller = await callerFor(site, { ...where, ...(session !== undefined && { session }) });
    return cookieIn(await caller.call("browser_open", { url: site.url("/cookie") }));
  }

  async shut(session?: string) {
    await closeBrowserSession(session);
  }
}

class User extends Agent {
  async visit(child: string, session?: string) {
    return await (await this.subAgent(Reader, child)).visit(session);
  }

  async remove(child: string) {
    await this.deleteSubAgent(Reader, child);
  }
}

const open = () => startHost({ agents: { Reader, User } });

test("children named alike, of two users, share neither pages nor cookies, whatever session the app names", async () => {
  const host = await open();
  const [ann, bob] = [host.getAgentByName(User, "ann"), host.getAgentByName(User, "bob")];
  expect(await ann.visit("reader", "reader")).toBe(FIRST);
  expect(await ann.visit("reader", "reader")).toBe(AGAIN);
  expect(await bob.visit("reader", "reader")).toBe(FIRST);
  // Nor do they with a root agent of that name, with code outside of agents, or with another host in this process.
  expect(await host.getAgentByName(Reader, "reader").visit("reader")).toBe(FIRST);
  const outside = await callerFor(site, { ...where, session: "reader" });
  expect(cookieIn(await outside.call("browser_open", { url: site.url("/cookie") }))).toBe(FIRST);
  const other = await open();
  expect(await other.getAgentByName(User, "ann").visit("reader", "reader")).toBe(FIRST);
  expect(await ann.visit("reader", "reader")).toBe(AGAIN);
});

test("an agent that was deleted and made again starts with no cookies", async () => {
  const host = await open();
  const cas = host.getAgentByName(User, "cas");
  expect(await cas.visit("reader")).toBe(FIRST);
  expect(await cas.visit("reader")).toBe(AGAIN);
  await cas.remove("reader");
  expect(await cas.visit("reader")).toBe(FIRST);
});

test("an agent closes its own session, not that of another", async () => {
  const host = await open();
  const [one, two] = [host.getAgentByName(Reader, "one"), host.getAgentByName(Reader, "two")];
  expect([await one.visit("s"), await two.visit("s")]).toEqual([FIRST, FIRST]);
  await one.shut("s");
  expect([await one.visit("s"), await two.visit("s")]).toEqual([FIRST, AGAIN]);
});

const script: Script = ({ userText, step }) =>
  step > 0
    ? "Done."
    : {
        toolCalls: [{ toolName: "browser_open", input: { url: site.url("/cookie") }, toolCallId: `call-${userText}` }],
      };

async function openReading(session: (agent: Think) => string | undefined) {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override async getTools() {
          const named = session(this);
          const egress = createEgress({ allow: [`http://${site.host}`], allowPrivate: [site.host] });
          return await createBrowserTools({ egress, ...where, ...(named !== undefined && { session: named }) });
        }
      },
  );
  const agent = await kit.agent();
  const visit = async (input: string, where = "main") => {
    await agent.runTurn({ input, session: where });
    const output = agent
      .getHistory(null, { session: where })
      .flatMap((message) => toolParts(message))
      .at(-1)?.output;
    return cookieIn(JSON.stringify(output));
  };
  return { visit, other: agent.createSession("Other").id };
}

test("without a name each conversation of an agent has its own pages and cookies, in later turns too", async () => {
  const { visit, other } = await openReading(() => undefined);
  expect(await visit("a")).toBe(FIRST);
  expect(await visit("b")).toBe(AGAIN);
  expect(await visit("c", other)).toBe(FIRST);
  expect(await visit("d", other)).toBe(AGAIN);
});

test("a name is shared by all conversations of the agent that gave it", async () => {
  const { visit, other } = await openReading((agent) => agent.name);
  expect(await visit("a")).toBe(FIRST);
  expect(await visit("b", other)).toBe(AGAIN);
});
