import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGuardedFetch } from "../../src/toolbox/egress/guarded-fetch.ts";
import { guardUrl } from "../../src/toolbox/egress/url-guard.ts";
import { refusal, startServer, type TestServer } from "./servers.ts";

let server: TestServer;
let sendMore = () => {};

beforeAll(async () => {
  server = await startServer((request, response) => {
    if (request.url === "/inward") response.writeHead(302, { location: "http://169.254.169.254/" });
    if (request.url === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1\n\n");
      sendMore = () => response.end("data: 2\n\n");
      return;
    }
    if (request.url === "/gzip")
      return void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("unpacked"));
    if (request.url === "/silent") return;
    response.end("hello");
  });
});
afterAll(() => server.close());

const guarded = () =>
  createGuardedFetch({
    allowPrivate: [`127.0.0.1:${server.port}`],
    resolve: () => Promise.resolve(["127.0.0.1"]),
    headersMs: 500,
  });
const at = (path: string) => `http://mcp.example.com:${server.port}${path}`;

test("a body is read while it comes", async () => {
  const response = await guarded()(at("/events"));
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader?.read())?.value).toBe("data: 1\n\n");
  sendMore();
  expect((await reader?.read())?.value).toBe("data: 2\n\n");
  expect((await reader?.read())?.done).toBe(true);
});

test("it is called like fetch", async () => {
  const request = new Request(at("/post"), { method: "POST", body: "b", headers: { "x-one": "1", host: "evil.test" } });
  const response = await guarded()(request);
  expect(response).toMatchObject({ ok: true, url: at("/post"), redirected: false });
  expect(server.seen.at(-1)).toMatchObject({ method: "POST", body: "b", headers: { "x-one": "1" } });
  expect(server.seen.at(-1)?.headers.host).toBe(`mcp.example.com:${server.port}`);
  expect(await (await guarded()(new URL(at("/gzip")))).text()).toBe("unpacked");
  const manual = await guarded()(at("/inward"), { redirect: "manual" });
  expect(manual.status).toBe(302);
});

test("what leads inward is refused", async () => {
  expect((await refusal(guarded()(at("/inward")))).code).toBe("not_allowed");
  expect((await refusal(guarded()("http://127.0.0.1:1/"))).code).toBe("not_allowed");
  expect((await refusal(guarded()("http://localhost:1/"))).code).toBe("not_allowed");
  expect((await refusal(guarded()("http://mcp.example.com/"))).code).toBe("not_allowed");
  expect((await refusal(guarded()("file:///etc/passwd"))).code).toBe("not_allowed");
});

test("an answer that does not begin is given up; a signal ends it at any time", async () => {
  expect((await refusal(guarded()(at("/silent")))).code).toBe("timeout");
  const controller = new AbortController();
  const response = await guarded()(at("/events"), { signal: controller.signal });
  const reading = response.text();
  controller.abort(new Error("enough"));
  await expect(reading).rejects.toThrow();
});

test.each([
  ["http://127.0.0.1/", "loopback"],
  ["http://0x7f.1/", "loopback"],
  ["http://[::ffff:10.0.0.1]/", "private"],
  ["http://169.254.169.254/", "metadata"],
  ["http://localhost/", "private network"],
  ["http://app.localhost/", "private network"],
  ["http://metadata.google.internal/", "private network"],
  ["http://printer.local/", "private network"],
  ["http://db/", "private network"],
  ["http://user@example.com/", "user name"],
  ["ftp://example.com/", "http"],
  ["nonsense", "absolute URL"],
])("guardUrl refuses %s", (url, why) => {
  expect(guardUrl(url)).toMatchObject({ ok: false, reason: expect.stringContaining(why) as string });
});

test("guardUrl lets public ones and named places through", () => {
  expect(guardUrl("https://Example.com./x")).toMatchObject({ ok: true, host: "example.com", port: 443 });
  expect(guardUrl("http://127.0.0.1:8080/", { allowPrivate: ["127.0.0.1:8080"] })).toMatchObject({ ok: true });
  expect(guardUrl("http://localhost:8080/", { allowPrivate: ["localhost:8080"] })).toMatchObject({ ok: true });
  expect(guardUrl("http://127.0.0.1:8081/", { allowPrivate: ["127.0.0.1:8080"] })).toMatchObject({ ok: false });
  expect(guardUrl("http://example.com/", { schemes: ["https:"] })).toMatchObject({ ok: false });
});
