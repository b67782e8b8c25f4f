import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent } from "../../index.ts";
import { memoryStorage } from "./memory-storage.ts";
import { serve, type ServedHost, type ServeOptions } from "./serve.ts";

class Note extends Agent {
  override onRequest(): Response {
    return new Response("the agent");
  }
}

const PAGE = "<!doctype html><title>page</title>";
const html = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

/** A site as a bundler builds it, beside a file that is nobody's business. */
function site(): string {
  const dir = mkdtempSync(join(tmpdir(), "perdure-assets-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const root = join(dir, "dist");
  mkdirSync(join(root, "assets"), { recursive: true });
  mkdirSync(join(root, "docs"));
  writeFileSync(join(dir, "secret.txt"), "secret");
  writeFileSync(join(root, "index.html"), PAGE);
  writeFileSync(join(root, "docs", "index.html"), "docs");
  writeFileSync(join(root, ".env"), "secret");
  writeFileSync(join(root, "a b.txt"), "spaced");
  writeFileSync(join(root, "empty.css"), "");
  writeFileSync(join(root, "assets", "main-Bx7Kq2_d.js"), "console.log(1);");
  writeFileSync(join(root, "assets", "logo.svg"), "<svg/>");
  writeFileSync(join(root, "assets", "photo-20240101.png"), "png");
  writeFileSync(join(root, "assets", "my-background.unknown"), "?");
  symlinkSync(join(dir, "secret.txt"), join(root, "link.txt"));
  symlinkSync(join(root, "a b.txt"), join(root, "inside.txt"));
  return root;
}

async function open(options: Partial<ServeOptions> = {}): Promise<ServedHost> {
  const host = await serve({
    agents: { Note },
    storage: memoryStorage(),
    port: 0,
    signals: false,
    assets: site(),
    ...options,
  });
  onTestFinished(() => host.stop());
  return host;
}

test("files are served with their type, and a directory with its index", async () => {
  const { url } = await open();
  const root = await fetch(url);
  expect([root.status, root.headers.get("content-type"), await root.text()]).toEqual([
    200,
    "text/html; charset=utf-8",
    PAGE,
  ]);
  expect(root.headers.get("content-length")).toBe(String(PAGE.length));
  expect(root.headers.get("x-content-type-options")).toBe("nosniff");
  expect(await (await fetch(`${url}/docs/`)).text()).toBe("docs");
  expect(await (await fetch(`${url}/a%20b.txt`)).text()).toBe("spaced");
  expect(await (await fetch(`${url}/inside.txt`)).text()).toBe("spaced");
  const types = ["/assets/main-Bx7Kq2_d.js", "/assets/logo.svg", "/assets/my-background.unknown"].map(async (path) =>
    (await fetch(url + path)).headers.get("content-type"),
  );
  expect(await Promise.all(types)).toEqual([
    "text/javascript; charset=utf-8",
    "image/svg+xml; charset=utf-8",
    "application/octet-stream",
  ]);
  const empty = await fetch(`${url}/empty.css`);
  expect([empty.status, await empty.text()]).toEqual([200, ""]);
});

test("a large file arrives whole, also for several readers at once", async () => {
  const root = site();
  const large = Buffer.alloc(3_000_000, "0123456789");
  writeFileSync(join(root, "large.bin"), large);
  const { url } = await open({ assets: root });
  const bodies = await Promise.all(
    Array.from({ length: 4 }, async () => Buffer.from(await (await fetch(`${url}/large.bin`)).arrayBuffer())),
  );
  for (const body of bodies) expect(body.equals(large)).toBe(true);
});

test("a known version is not sent again, a changed one is", async () => {
  const root = site();
  const { url } = await open({ assets: root });
  const first = await fetch(`${url}/assets/logo.svg`);
  const etag = first.headers.get("etag") ?? "";
  await first.text();
  const ask = (wanted: string) => fetch(`${url}/assets/logo.svg`, { headers: { "if-none-match": wanted } });
  for (const wanted of [etag, `"other", ${etag}`, etag.replace("W/", ""), "*"]) {
    const again = await ask(wanted);
    expect([wanted, again.status, await again.text()]).toEqual([wanted, 304, ""]);
    expect(again.headers.get("etag")).toBe(etag);
  }
  expect((await ask('"other"')).status).toBe(200);
  writeFileSync(join(root, "assets", "logo.svg"), "<svg>new</svg>");
  const changed = await ask(etag);
  expect([changed.status, await changed.text()]).toEqual([200, "<svg>new</svg>"]);
});

test("only names with a hash under /assets/ are kept for ever", async () => {
  const { url } = await open();
  const caching = async (path: string) => (await fetch(url + path)).headers.get("cache-control");
  expect(await caching("/assets/main-Bx7Kq2_d.js")).toBe("public, max-age=31536000, immutable");
  for (const path of ["/", "/assets/logo.svg", "/assets/photo-20240101.png", "/assets/my-background.unknown"]) {
    expect([path, await caching(path)]).toEqual([path, "no-cache"]);
  }
});

test("HEAD has the headers of GET and no body; other methods are not for files", async () => {
  const { url } = await open();
  const head = await fetch(`${url}/assets/logo.svg`, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "6", ""]);
  expect((await fetch(`${url}/assets/logo.svg`, { method: "POST" })).status).toBe(404);
  expect((await fetch(`${url}/`, { method: "DELETE" })).status).toBe(404);
});

test("an address of a page gets the index; a missing file does not", async () => {
  const { url } = await open();
  for (const path of ["/c/123", "/anything?x=1", "/docs"]) {
    const response = await fetch(url + path, { headers: html });
    expect([path, response.status, await response.text()]).toEqual([path, 200, PAGE]);
  }
  for (const path of ["/missing.js", "/assets/gone-Bx7Kq2_d.js"]) {
    expect([path, (await fetch(url + path, { headers: html })).status]).toEqual([path, 404]);
  }
  expect((await fetch(`${url}/c/123`, { headers: { accept: "application/json" } })).status).toBe(404);
});

test("agents come first, then `fetch`, then files", async () => {
  const { url } = await open({
    fetch: (request) => (new URL(request.url).pathname === "/docs/" ? new Response("the app") : undefined),
  });
  expect(await (await fetch(`${url}/agents/note/x`, { headers: html })).text()).toBe("the agent");
  expect(await (await fetch(`${url}/docs/`)).text()).toBe("the app");
  expect(await (await fetch(`${url}/`)).text()).toBe(PAGE);
  expect((await fetch(`${url}/health`, { headers: html })).headers.get("content-type")).toContain("json");
  expect((await fetch(`${url}/agents/nobody/x`, { headers: html })).status).toBe(400);
});

test("nothing outside of the directory and nothing hidden is served", async () => {
  const { url, port } = await open();
  for (const path of [
    "/../secret.txt",
    "/..%2fsecret.txt",
    "/%2e%2e/secret.txt",
    "/%2e%2e%2fsecret.txt",
    "/assets/../../secret.txt",
    "/assets/..%2f..%2fsecret.txt",
    "/assets/..%5c..%5csecret.txt",
    "//secret.txt",
    "/.env",
    "/%2eenv",
    "/link.txt",
    "/a%00b",
    "/%ff",
    "/%",
    `/${"x".repeat(5000)}.txt`,
  ]) {
    const answer = await rawGet(port, path);
    expect([path, answer.status]).toEqual([path, expect.stringMatching(/^4/)]);
    expect(answer.body).not.toContain("secret");
  }
  expect((await fetch(url)).status).toBe(200);
});

test("a directory that is not there is told at the start", async () => {
  await expect(open({ assets: join(site(), "nowhere") })).rejects.toThrow("`assets` must be a directory");
  await expect(open({ assets: join(site(), "index.html") })).rejects.toThrow("is not a directory");
});

/** A request whose path no client library has tidied up. */
function rawGet(port: number, path: string): Promise<{ status: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`),
    );
    let all = "";
    socket.on("data", (data: Buffer) => (all += data.toString("latin1")));
    socket.on("error", reject);
    socket.on("close", () =>
      resolve({ status: all.split(" ")[1] ?? "", body: all.split("\r\n\r\n").slice(1).join("") }),
    );
  });
}
