import { gzipSync, brotliCompressSync } from "node:zlib";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createEgress, type EgressOptions } from "../../src/toolbox/egress/egress.ts";
import type { EgressDecision } from "../../src/toolbox/egress/decision.ts";
import { listening, refusal, startServer, type TestServer } from "./servers.ts";

let main: TestServer;
let other: TestServer;
const BOMB = gzipSync(Buffer.alloc(8 << 20));

beforeAll(async () => {
  main = await startServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    const to = url.searchParams.get("to");
    if (url.pathname === "/redirect")
      response.writeHead(Number(url.searchParams.get("status") ?? 302), { location: to ?? "" });
    else if (url.pathname === "/loop") response.writeHead(302, { location: "/loop" });
    else if (url.pathname === "/big") return void response.end(Buffer.alloc(200_000));
    else if (url.pathname === "/endless") return stream(response);
    else if (url.pathname === "/silent") return;
    else if (url.pathname === "/drip") return drip(response);
    else if (url.pathname === "/bomb") return void response.writeHead(200, { "content-encoding": "gzip" }).end(BOMB);
    else if (url.pathname === "/twice") response.writeHead(200, { "content-encoding": "gzip, gzip" });
    else if (url.pathname === "/broken")
      return void response.writeHead(200, { "content-encoding": "gzip" }).end("not gzip");
    else if (url.pathname === "/br")
      return void response.writeHead(200, { "content-encoding": "br" }).end(brotliCompressSync("squeezed"));
    response.end("hello");
  });
  other = await startServer((_request, response) => response.end("other"));
});
afterAll(async () => {
  await main.close();
  await other.close();
});
beforeEach(() => {
  main.seen.length = 0;
  other.seen.length = 0;
});

function stream(response: ServerResponse): void {
  const more = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  };
  response.on("drain", more);
  more();
}

function drip(response: ServerResponse): void {
  const timer = setInterval(() => response.write("."), 20);
  response.on("close", () => clearInterval(timer));
}

/** Names of public hosts that lead to the two servers. */
const zone: Record<string, readonly string[]> = {
  "api.example.com": ["127.0.0.1"],
  "other.example.com": ["127.0.0.1"],
};

function egress(options: Partial<EgressOptions> = {}) {
  const decisions: EgressDecision[] = [];
  const made = createEgress({
    allow: [`api.example.com:${main.port}`, `other.example.com:${other.port}`],
    allowPrivate: [`127.0.0.1:${main.port}`, `127.0.0.1:${other.port}`],
    resolve: (host) => Promise.resolve(zone[host] ?? []),
    onDecision: (decision) => decisions.push(decision),
    ...options,
  });
  return Object.assign(made, { decisions });
}

const api = (path: string) => `http://api.example.com:${main.port}${path}`;
const at = (url: string) => api(`/redirect?to=${encodeURIComponent(url)}`);

test("an allowed request goes to the resolved address, under its name", async () => {
  const out = egress();
  const answer = await out.fetch(api("/x?key=1#part"));
  expect(answer).toMatchObject({ status: 200, url: api("/x?key=1") });
  expect(new TextDecoder().decode(answer.body)).toBe("hello");
  expect(main.seen[0]).toMatchObject({ method: "GET", url: "/x?key=1" });
  expect(main.seen[0]?.headers.host).toBe(`api.example.com:${main.port}`);
  expect(out.decisions).toEqual([
    {
      allowed: true,
      via: "fetch",
      method: "GET",
      url: api("/x"),
      hop: 0,
      rule: `api.example.com:${main.port}`,
      address: "127.0.0.1",
    },
  ]);
});

test("bodies, methods and headers of the guest are sent", async () => {
  await egress().fetch(api("/"), { method: "post", body: "a body", headers: { "X-One": "1" } });
  expect(main.seen[0]).toMatchObject({
    method: "POST",
    body: "a body",
    headers: { "x-one": "1", "content-length": "6" },
  });
});

test.each([
  ["another host", "http://evil.example.com/"],
  ["another port", "http://api.example.com/"],
  ["a user name", "http://api.example.com@evil.test/"],
  ["the metadata address", "http://169.254.169.254/latest/"],
  ["a number as address", "http://2130706433/"],
  ["no http", "file:///etc/passwd"],
])("%s is refused, and nothing is sent", async (_what, url) => {
  const out = egress();
  expect((await refusal(out.fetch(url))).code).toBe("not_allowed");
  expect(out.decisions).toHaveLength(1);
  expect(out.decisions[0]).toMatchObject({ allowed: false, hop: 0 });
});

test.each([
  ["127.0.0.1"],
  ["10.0.0.5"],
  ["169.254.169.254"],
  ["100.64.1.1"],
  ["0.0.0.0"],
  ["::1"],
  ["::ffff:127.0.0.1"],
  ["fd00::5"],
  ["fe80::5"],
  ["64:ff9b::7f00:1"],
])("a name that leads to %s is refused", async (address) => {
  const out = egress({ allow: ["api.example.com"], resolve: () => Promise.resolve([address]) });
  const { code, message } = await refusal(out.fetch("http://api.example.com/"));
  expect(code).toBe("not_allowed");
  expect(message).toContain("not public");
  expect(message).not.toContain(address);
});

test.each([
  ["public first", ["93.184.216.34", "127.0.0.1"]],
  ["private first", ["127.0.0.1", "93.184.216.34"]],
  ["IPv6 among them", ["93.184.216.34", "::1"]],
  ["one that is no address", ["93.184.216.34", "localhost"]],
  ["none at all", []],
])("mixed answers are refused: %s", async (_what, addresses) => {
  const out = egress({ allow: ["api.example.com"], resolve: () => Promise.resolve(addresses) });
  expect((await refusal(out.fetch("http://api.example.com/"))).code).toBe("not_allowed");
});

test("an allowed private place is that address and that port, and must be in the rules too", async () => {
  const literal = `http://127.0.0.1:${main.port}/`;
  expect((await refusal(egress().fetch(literal))).code).toBe("not_allowed");
  const wrongPort = egress({ allow: [`127.0.0.1:${main.port}`], allowPrivate: [`127.0.0.1:${other.port}`] });
  expect((await refusal(wrongPort.fetch(literal))).code).toBe("not_allowed");
  const named = egress({ allow: [`127.0.0.1:${main.port}`] });
  expect((await named.fetch(literal)).status).toBe(200);
  // The same address in another spelling is the same place.
  expect((await named.fetch(`http://0x7f.1:${main.port}/`)).status).toBe(200);
});

test("a name of a private network needs to be named, and cannot lead to metadata", async () => {
  const allow = [`service.internal:${main.port}`];
  const closed = egress({ allow, resolve: () => Promise.resolve(["127.0.0.1"]) });
  expect((await refusal(closed.fetch(`http://service.internal:${main.port}/`))).message).toContain("private network");
  const open = (address: string) => egress({ allow, allowPrivate: allow, resolve: () => Promise.resolve([address]) });
  expect((await open("127.0.0.1").fetch(`http://service.internal:${main.port}/`)).status).toBe(200);
  const { code } = await refusal(open("169.254.169.254").fetch(`http://service.internal:${main.port}/`));
  expect(code).toBe("not_allowed");
});

test("a resolver that changes its answer is asked once, and the first answer is connected to", async () => {
  const second = await startServer((_request, response) => response.end("rebound"), {
    host: "127.0.0.2",
    port: main.port,
  });
  const answers = ["127.0.0.1", "127.0.0.2"];
  let asked = 0;
  const out = egress({
    allowPrivate: [`127.0.0.1:${main.port}`],
    resolve: () => Promise.resolve([answers[Math.min(asked++, 1)] ?? ""]),
  });
  expect(new TextDecoder().decode((await out.fetch(api("/"))).body)).toBe("hello");
  expect(asked).toBe(1);
  expect(second.seen).toHaveLength(0);
  // The next request asks again, and is refused: this answer was not allowed.
  expect((await refusal(out.fetch(api("/")))).code).toBe("not_allowed");
  expect(second.seen).toHaveLength(0);
  await second.close();
});

test("IPv6 works the same", async () => {
  const six = await startServer((_request, response) => response.end("six"), { host: "::1" });
  const out = egress({ allow: [`[::1]:${six.port}`], allowPrivate: [`[::1]:${six.port}`] });
  expect((await out.fetch(`http://[0:0::1]:${six.port}/`)).status).toBe(200);
  expect(six.seen[0]?.headers.host).toBe(`[::1]:${six.port}`);
  const closed = egress({ allow: [`[::1]:${six.port}`], allowPrivate: [] });
  expect((await refusal(closed.fetch(`http://[::1]:${six.port}/`))).code).toBe("not_allowed");
  await six.close();
});

test("redirects within the rules are followed, and each is decided", async () => {
  const out = egress();
  const to = `http://other.example.com:${other.port}/end`;
  const answer = await out.fetch(at(to), { headers: { authorization: "mine", cookie: "c=1", "x-other": "kept" } });
  expect(answer.url).toBe(to);
  expect(other.seen[0]?.headers).toMatchObject({ "x-other": "kept" });
  expect(other.seen[0]?.headers).not.toHaveProperty("authorization");
  expect(other.seen[0]?.headers).not.toHaveProperty("cookie");
  expect(out.decisions.map(({ hop, allowed }) => [hop, allowed])).toEqual([
    [0, true],
    [1, true],
  ]);
});

test("secrets stay on a redirect within the origin", async () => {
  await egress().fetch(at("/next"), { headers: { authorization: "mine" } });
  expect(main.seen[1]).toMatchObject({ url: "/next", headers: { authorization: "mine" } });
});

test.each([
  ["another host", "http://evil.example.com/"],
  ["another port", "http://api.example.com:1/"],
  ["a private address", "http://127.0.0.1:1/"],
  ["metadata", "http://169.254.169.254/"],
  ["a file", "file:///etc/passwd"],
  ["a user name", "http://user:hunter2@api.example.com/"],
  ["another host without a scheme", "//evil.example.com/"],
])("a redirect to %s is refused", async (_what, to) => {
  const out = egress();
  expect((await refusal(out.fetch(at(to)))).code).toBe("not_allowed");
  expect(main.seen).toHaveLength(1);
  expect(out.decisions.at(-1)).toMatchObject({ allowed: false, hop: 1 });
  expect(JSON.stringify(out.decisions)).not.toContain("hunter2");
});

test("a redirect out of an allowed path is refused", async () => {
  const out = egress({ allow: [`http://api.example.com:${main.port}/redirect`] });
  expect((await refusal(out.fetch(at("/admin")))).code).toBe("not_allowed");
  expect((await refusal(out.fetch(at("/redirect/%2e%2e/admin")))).code).toBe("not_allowed");
  expect(main.seen.map(({ url }) => new URL(url, "http://x").pathname)).toEqual(["/redirect", "/redirect"]);
});

test("a redirect loop ends after 5", async () => {
  expect((await refusal(egress().fetch(api("/loop")))).code).toBe("limit");
  expect(main.seen).toHaveLength(6);
});

test("a POST becomes a GET after 302, and stays one after 307", async () => {
  const send = (status: number) =>
    egress().fetch(api(`/redirect?status=${status}&to=/next`), { method: "POST", body: "b" });
  await send(302);
  await send(307);
  expect(main.seen.filter(({ url }) => url === "/next").map(({ method, body }) => [method, body])).toEqual([
    ["GET", ""],
    ["POST", "b"],
  ]);
});

test.each([
  ["a line break in a value", { "x-a": "1\r\nx-b: 2" }],
  ["a lone line feed", { "x-a": "1\nx-b: 2" }],
  ["a zero byte", { "x-a": "1\u0000" }],
  ["a line break in a name", { "x-a\r\nx-b": "1" }],
  ["a colon in a name", { "x-a:": "1" }],
  ["an empty name", { "": "1" }],
  ["a character of two bytes", { "x-a": "\u560a" }],
])("%s is refused", async (_what, headers) => {
  expect((await refusal(egress().fetch(api("/"), { headers }))).code).toBe("bad_input");
  expect(main.seen).toHaveLength(0);
});

test("the headers of the connection and of the host cannot be set", async () => {
  const headers = {
    ...{
      Host: "evil.test",
      HOST: "evil.test",
      Connection: "x-drop, keep-alive",
      "x-drop": "1",
      "Transfer-Encoding": "chunked",
    },
    ...{
      "Content-Length": "999",
      Upgrade: "websocket",
      TE: "trailers",
      "Proxy-Authorization": "x",
      Expect: "100-continue",
    },
    ...{ "Keep-Alive": "timeout=9", "accept-encoding": "zstd", "x-kept": "1" },
  };
  await egress().fetch(api("/"), { headers });
  const sent = main.seen[0]?.headers ?? {};
  expect(sent.host).toBe(`api.example.com:${main.port}`);
  expect(sent["accept-encoding"]).toBe("gzip, br");
  expect(sent["x-kept"]).toBe("1");
  const gone = [
    "x-drop",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "te",
    "proxy-authorization",
    "expect",
    "keep-alive",
  ];
  for (const name of gone) expect(sent).not.toHaveProperty(name);
});

test("credentials are added after the guest's headers, for their place alone", async () => {
  const secret = { authorization: "Bearer host", "x-api-key": "k" };
  const inject = [{ to: `http://api.example.com:${main.port}`, headers: () => Promise.resolve(secret) }];
  const out = egress({ inject });
  const answer = await out.fetch(api("/"), { headers: { Authorization: "guest", "X-API-Key": "guest" } });
  expect(main.seen[0]?.headers).toMatchObject(secret);
  expect(JSON.stringify(answer.headers)).not.toContain("host");
  await out.fetch(at(`http://other.example.com:${other.port}/`));
  for (const name of Object.keys(secret)) expect(other.seen[0]?.headers).not.toHaveProperty(name);
  // Without a scheme a rule of credentials means https: they never go out in the clear by accident.
  main.seen.length = 0;
  await egress({ inject: [{ to: `api.example.com:${main.port}`, headers: secret }] }).fetch(api("/"));
  expect(main.seen[0]?.headers).not.toHaveProperty("authorization");
});

test("only allowed methods are sent, under no disguise", async () => {
  const out = egress({ methods: ["GET"] });
  expect((await refusal(out.fetch(api("/"), { method: "DELETE" }))).code).toBe("not_allowed");
  expect((await refusal(egress().fetch(api("/"), { method: "CONNECT" }))).code).toBe("not_allowed");
  expect((await refusal(egress().fetch(api("/"), { method: "GET / HTTP/1.1\r\nx" }))).code).toBe("not_allowed");
  await out.fetch(api("/"), { headers: { "X-HTTP-Method-Override": "DELETE" } });
  expect(main.seen).toHaveLength(1);
  expect(main.seen[0]?.headers).not.toHaveProperty("x-http-method-override");
});

test.each([["/big"], ["/endless"], ["/bomb"]])("%s is given up at the limit", async (path) => {
  const out = egress({ limits: { responseBytes: 100_000 } });
  expect((await refusal(out.fetch(api(path)))).code).toBe("limit");
});

test("compressed bodies are read; what cannot be unpacked fails", async () => {
  const out = egress();
  const answer = await out.fetch(api("/br"));
  expect(new TextDecoder().decode(answer.body)).toBe("squeezed");
  expect(answer.headers).not.toHaveProperty("content-encoding");
  expect((await refusal(out.fetch(api("/twice")))).code).toBe("call_failed");
  expect((await refusal(out.fetch(api("/broken")))).code).toBe("call_failed");
});

test("a body that is too large to send is refused", async () => {
  const out = egress({ limits: { requestBytes: 10 } });
  expect((await refusal(out.fetch(api("/"), { method: "POST", body: "12345678901" }))).code).toBe("limit");
  expect(main.seen).toHaveLength(0);
});

test("silence ends by the idle limit, a slow drip by the whole one", async () => {
  expect((await refusal(egress({ limits: { idleMs: 50 } }).fetch(api("/silent")))).code).toBe("timeout");
  expect((await refusal(egress({ limits: { totalMs: 150, idleMs: 5_000 } }).fetch(api("/drip")))).code).toBe("timeout");
  const slow = egress({ limits: { totalMs: 50 }, resolve: () => new Promise(() => {}) });
  expect((await refusal(slow.fetch(api("/")))).code).toBe("timeout");
});

test("an abort ends a request with its reason", async () => {
  const controller = new AbortController();
  const going = egress().fetch(api("/silent"), { signal: controller.signal });
  controller.abort(new Error("enough"));
  expect((await refusal(going)).message).toBe("enough");
});

test("requests are counted: in all, in a minute, and at once", async () => {
  const few = egress({ limits: { requests: 2 } });
  await few.fetch(api("/"));
  await few.fetch(api("/"));
  expect((await refusal(few.fetch(api("/")))).code).toBe("limit");
  const slow = egress({ limits: { requestsPerMinute: 1 } });
  await slow.fetch(api("/"));
  expect((await refusal(slow.fetch(api("/")))).code).toBe("limit");
  const narrow = egress({ limits: { concurrent: 1 } });
  const answers = await Promise.all([1, 2, 3, 4].map(() => narrow.fetch(api("/"))));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

test("what fails says no address", async () => {
  const closed = createServer();
  await listening(closed, "127.0.0.1");
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const out = egress({ allow: [`api.example.com:${port}`], allowPrivate: [`127.0.0.1:${port}`] });
  const { code, message } = await refusal(out.fetch(`http://api.example.com:${port}/`));
  expect(code).toBe("call_failed");
  expect(message).toContain("ECONNREFUSED");
  expect(message).not.toContain("127.0.0.1");
});

test("a listener that throws changes nothing", async () => {
  const out = egress({
    onDecision: () => {
      throw new Error("broken log");
    },
  });
  expect((await out.fetch(api("/"))).status).toBe(200);
});
