import { afterAll, beforeAll, expect, test } from "vitest";
import { closeBrowsers, createBrowserTools, probeBrowser } from "../../src/toolbox/sandbox/browser/browser-tools.ts";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import { callerFor, openChromium, refOf, resultOf } from "./browser-suite.ts";
import { type Site, startSite } from "./site.ts";

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(async () => {
  await closeBrowsers();
  site.close();
});

test("without a jail the rules for addresses and requests are the same", async () => {
  const executablePath = await openChromium();
  expect(await probeBrowser({ executablePath, jail: "none" })).toEqual({ ok: true, detail: "Chromium without a jail" });
  const caller = await callerFor(site, { executablePath, jail: "none", session: "unjailed" });
  expect(caller.names).toEqual(["browser_open", "browser_snapshot", "browser_act", "browser_read", "browser_close"]);
  for (const url of [
    "file:///etc/passwd",
    "view-source:file:///etc/passwd",
    "chrome://version",
    "http://169.254.169.254/",
  ]) {
    expect(await caller.output("browser_open", { url })).toEqual({ error: expect.any(String) as unknown });
  }
  for (const name of ["file", "source", "script", "other"]) {
    const steps = await caller.call("browser_open", { url: site.url("/steps") });
    const after = await caller.call("browser_act", { ref: refOf(steps, `link "${name}"`), action: "click" });
    expect(after + (await caller.call("browser_read", { format: "text" }))).not.toMatch(/root:|reached/);
  }
  for (const path of ["/socket", "/webrtc"]) {
    await caller.call("browser_open", { url: site.url(path) });
    await resultOf(caller);
  }
  expect(site.reached).toEqual([]);
});

test("where there is no browser there are no tools, and the probe says what to install", async () => {
  const nowhere = { executablePath: "/nowhere/chromium" };
  expect(await probeBrowser(nowhere)).toMatchObject({
    ok: false,
    missing: expect.stringContaining("Install Chromium") as unknown,
  });
  expect(await createBrowserTools({ ...nowhere, egress: createEgress({ allow: [] }) })).toEqual({});
  await expect(createBrowserTools({ egress: undefined as never })).rejects.toMatchObject({ code: "bad_config" });
  await expect(createBrowserTools({ egress: createEgress({ allow: [] }), maxPages: 0 })).rejects.toMatchObject({
    code: "bad_config",
  });
});
