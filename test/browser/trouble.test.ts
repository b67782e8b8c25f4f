import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { launchBrowser } from "./browser.ts";
import { findBarriers } from "./accessibility.ts";
import { openLink } from "./link.ts";
import { soon } from "./soon.ts";
import { LOST_CONNECTION, watchTrouble } from "./trouble.ts";

// The other files rely on these to notice what is wrong, so here something is.

let browser: Browser | undefined;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser?.close());

async function openPage(url: string) {
  const page = await (browser as Browser).newPage();
  const trouble = watchTrouble(page);
  await page.goto(url);
  return { page, trouble };
}

async function serveText(answer: (path: string) => { status: number; body: string }) {
  const server = createServer((request, response) => {
    const { status, body } = answer(request.url ?? "/");
    response.writeHead(status, { "content-type": "text/html" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return { port: address.port, close: () => server.close() };
}

test("console errors, uncaught errors, refused and failed requests are noticed, expected ones are not", async () => {
  const site = await serveText((path) => ({ status: path === "/none" ? 404 : 200, body: "<h1>here</h1>" }));
  const { page, trouble } = await openPage(`http://127.0.0.1:${site.port}/`);
  await page.evaluate(() => console.log("all is well"));
  await page.evaluate(async () => void (await fetch("/fine")));
  expect(trouble.list()).toEqual([]);
  await page.evaluate(() => console.error("bad"));
  await page.evaluate(() => console.warn("odd"));
  await page.evaluate(() => void setTimeout(() => Promise.reject(new Error("thrown")), 0));
  await page.evaluate(async () => void (await fetch("/none")));
  await soon(() => trouble.list().join("\n")).toMatch(
    /error: bad[^]*warning: odd[^]*uncaught[^]*thrown[^]*refused: 404/,
  );
  const before = trouble.list().length;
  trouble.expect(/bad/);
  await page.evaluate(() => console.error("bad"));
  expect(trouble.list()).toHaveLength(before);
  site.close();
});

test("a cut link ends what is open and refuses the rest until it is mended; a held one only waits", async () => {
  const asked: string[] = [];
  const site = await serveText((path) => {
    asked.push(path);
    return { status: 200, body: path };
  });
  const link = await openLink(() => site.port);
  const { page, trouble } = await openPage(`${link.url}/start`);
  const get = (path: string) => page.evaluate((at) => fetch(at).then((answer) => answer.text()), path);
  expect(await get("/one")).toBe("/one");

  link.hold();
  const held = get("/two");
  await fetch(`http://127.0.0.1:${site.port}/meanwhile`);
  expect(asked.slice(-2)).toEqual(["/one", "/meanwhile"]);
  link.release();
  expect(await held).toBe("/two");

  await link.cut();
  await expect(get("/three")).rejects.toThrow("Failed to fetch");
  await soon(() => trouble.list().length).toBeGreaterThan(0);
  expect(trouble.list().filter((line) => !LOST_CONNECTION.test(line))).toEqual([]);
  await link.mend();
  expect(await get("/four")).toBe("/four");
  await link.close();
  site.close();
});

test("what keeps people out is noticed, in both colour schemes", async () => {
  const site = await serveText(() => ({
    status: 200,
    body: `<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>
      <style>:root { color-scheme: light dark } @media (prefers-color-scheme: dark) { p { color: #222; background: #000 } }</style>
      <p>hard to read in the dark</p></main></html>`,
  }));
  const { page } = await openPage(`http://127.0.0.1:${site.port}/`);
  expect(await findBarriers(page)).toEqual([expect.stringMatching(/^dark: color-contrast/)]);
  await page.evaluate(() => document.querySelector("p")?.remove());
  expect(await findBarriers(page)).toEqual([]);
  await page.evaluate(() => document.querySelector("main")?.append(document.createElement("button")));
  expect(await findBarriers(page)).toEqual([
    expect.stringMatching(/^light: button-name/),
    expect.stringMatching(/^dark: button-name/),
  ]);
  site.close();
});
