import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { EgressDecision } from "../../src/toolbox/egress/decision.ts";
import { createEgress, type EgressOptions } from "../../src/toolbox/egress/egress.ts";
import { listening, refusal, startServer, type TestServer } from "./servers.ts";

let folder: string;
let main: TestServer;
let echo: Server;
let echoPort: number;
const decisions: EgressDecision[] = [];
const open: { close(): Promise<void> }[] = [];
let count = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "egress-"));
  main = await startServer((request, response) => {
    if (request.url === "/redirect") response.writeHead(302, { location: "http://evil.example.com/" });
    response.end(request.url === "/big" ? Buffer.alloc(200_000) : "hello");
  });
  echo = createServer((socket) => {
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  await listening(echo, "127.0.0.1");
  echoPort = (echo.address() as { port: number }).port;
});
afterAll(async () => {
  await main.close();
  await new Promise((resolve) => echo.close(resolve));
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  decisions.length = 0;
  main.seen.length = 0;
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function proxy(options: Partial<EgressOptions> = {}): Promise<string> {
  const path = join(folder, `${count++}.sock`);
  const egress = createEgress({
    allow: [`api.example.com:${main.port}`, `echo.example.com:${echoPort}`],
    allowPrivate: [`127.0.0.1:${main.port}`, `127.0.0.1:${echoPort}`],
    resolve: (host) => Promise.resolve(host.endsWith(".example.com") ? ["127.0.0.1"] : []),
    onDecision: (decision) => decisions.push(decision),
    ...options,
  });
  open.push(await egress.listen(path));
  return path;
}

/** A request in absolute form, as programs with `http_proxy` send it. */
function ask(
  socketPath: string,
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; text: string; headers: IncomingMessage["headers"] }> {
  return new Promise((resolve, reject) => {
    const request = requestHttp({ socketPath, path: url, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          headers: response.headers,
        }),
      );
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** What comes back on a raw connection until it ends, or until `enough` says so. */
function raw(socketPath: string, text: string, enough: (so_far: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(socketPath, () => socket.write(text));
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
      if (enough(got)) socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(got));
  });
}

const tunnel = (path: string, authority: string, rest = "", enough?: (text: string) => boolean) =>
  raw(path, `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n${rest}`, enough);

test("a plain request is forwarded under the policy, with the host's headers", async () => {
  const path = await proxy({ inject: [{ to: `http://api.example.com:${main.port}`, headers: { "x-key": "secret" } }] });
  const headers = { host: "evil.test", "x-key": "guest", "proxy-authorization": "x", "x-kept": "1" };
  const url = `http://api.example.com:${main.port}/x?q=1`;
  const answer = await ask(path, url, { method: "POST", headers, body: "a body" });
  expect(answer).toMatchObject({ status: 200, text: "hello" });
  expect(main.seen[0]).toMatchObject({ method: "POST", url: "/x?q=1", body: "a body" });
  expect(main.seen[0]?.headers).toMatchObject({
    host: `api.example.com:${main.port}`,
    "x-key": "secret",
    "x-kept": "1",
  });
  expect(main.seen[0]?.headers).not.toHaveProperty("proxy-authorization");
  expect(decisions).toMatchObject([
    { allowed: true, via: "proxy", address: "127.0.0.1", rule: `api.example.com:${main.port}` },
  ]);
});

test.each([
  ["another host", "http://evil.example.com/"],
  ["another port", "http://api.example.com/"],
  ["an address", "http://127.0.0.1/"],
  ["metadata", "http://169.254.169.254/"],
  ["a user name", "http://api.example.com@evil.test/"],
  ["no proxy request", "/etc/passwd"],
  ["another scheme", "ftp://api.example.com/"],
])("%s is answered with 403 and a reason", async (_what, url) => {
  const { status, text } = await ask(await proxy(), url);
  expect(status).toBe(403);
  expect(text.length).toBeGreaterThan(10);
  expect(decisions).toMatchObject([{ allowed: false, via: "proxy" }]);
  expect(main.seen).toHaveLength(0);
});

test("redirects are the program's to follow, and are decided when it does", async () => {
  const path = await proxy();
  const { status, headers } = await ask(path, `http://api.example.com:${main.port}/redirect`);
  expect(status).toBe(302);
  expect((await ask(path, headers.location ?? "")).status).toBe(403);
});

test("a name that leads inward is refused, in both ways", async () => {
  const path = await proxy({ allow: ["api.example.com"], allowPrivate: [] });
  expect((await ask(path, "http://api.example.com/")).status).toBe(403);
  expect(await tunnel(path, "api.example.com:443")).toMatch(/^HTTP\/1\.1 403 /);
});

test("responses and requests are bounded", async () => {
  const path = await proxy({ limits: { responseBytes: 1_000, requestBytes: 1_000 } });
  const url = `http://api.example.com:${main.port}`;
  expect((await refusal(ask(path, `${url}/big`))).code).toBe("ECONNRESET");
  const upload = await ask(path, `${url}/`, { method: "POST", body: "x".repeat(2_000) });
  expect(upload.status).toBe(429);
  expect(main.seen.filter(({ method }) => method === "POST")).toHaveLength(0);
  const few = await proxy({ limits: { requests: 1 } });
  expect((await ask(few, `${url}/`)).status).toBe(200);
  expect((await ask(few, `${url}/`)).status).toBe(429);
});

test("a tunnel goes to the pinned address", async () => {
  let asked = 0;
  const resolve = () => Promise.resolve(asked++ === 0 ? ["127.0.0.1"] : ["127.0.0.2"]);
  const path = await proxy({ resolve });
  const answer = await tunnel(path, `echo.example.com:${echoPort}`, "ping", (text) => text.endsWith("ping"));
  expect(answer).toMatch(/^HTTP\/1\.1 200 [^\r]*\r\n\r\nping$/);
  expect(asked).toBe(1);
  expect(decisions).toEqual([
    {
      ...{ allowed: true, via: "tunnel", method: "CONNECT", url: `echo.example.com:${echoPort}`, hop: 0 },
      ...{ rule: `echo.example.com:${echoPort}`, address: "127.0.0.1" },
    },
  ]);
});

test.each([
  ["another host", "evil.example.com:443"],
  ["another port", "echo.example.com:22"],
  ["an address of the own machine", "127.0.0.1:443"],
  ["IPv6 of the own machine", "[::1]:443"],
  ["metadata", "169.254.169.254:80"],
  ["no port", "echo.example.com"],
  ["a user name", "user@echo.example.com:443"],
  ["a URL", "http://echo.example.com:443"],
  ["a path", "echo.example.com:443/x"],
])("a tunnel to %s is answered with 403", async (_what, authority) => {
  expect(await tunnel(await proxy(), authority)).toMatch(/^HTTP\/1\.1 40[03] /);
});

test("a rule with a path opens no tunnel, and the answer says why", async () => {
  const path = await proxy({ allow: [`https://echo.example.com:${echoPort}/v1/`] });
  const answer = await tunnel(path, `echo.example.com:${echoPort}`);
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(answer).toContain("cannot be checked in a tunnel");
});

test("a tunnel ends at its limits: bytes, silence, time", async () => {
  const place = `echo.example.com:${echoPort}`;
  const bytes = await tunnel(await proxy({ limits: { tunnelBytes: 1_000 } }), place, "x".repeat(5_000));
  expect(bytes.length).toBeLessThan(5_000);
  expect(await tunnel(await proxy({ limits: { tunnelIdleMs: 50 } }), place)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await tunnel(await proxy({ limits: { tunnelMs: 50 } }), place)).toMatch(/^HTTP\/1\.1 200 /);
});

test("a place that is not there is a 502, and a tunnel gives its place back", async () => {
  const closed = createServer();
  await listening(closed, "127.0.0.1");
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const options = {
    allow: [`api.example.com:${port}`],
    allowPrivate: [`127.0.0.1:${port}`],
    limits: { concurrent: 1 },
  };
  const path = await proxy(options);
  const answer = await ask(path, `http://api.example.com:${port}/`);
  expect(answer).toMatchObject({ status: 502, text: expect.not.stringContaining("127.0.0.1") as string });
  expect(await tunnel(path, `api.example.com:${port}`)).toMatch(/^HTTP\/1\.1 502 /);
  expect(await tunnel(path, `api.example.com:${port}`)).toMatch(/^HTTP\/1\.1 502 /);
});

test("what is no request, or wants an upgrade, is refused", async () => {
  const path = await proxy();
  expect(await raw(path, "\u0016\u0003\u0001 hello\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
  const upgrade = `GET http://api.example.com:${main.port}/ HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`;
  expect(await raw(path, upgrade)).toMatch(/^HTTP\/1\.1 403 /);
  const smuggled =
    `POST http://api.example.com:${main.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n` +
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example.com/ HTTP/1.1\r\nHost: a\r\n\r\n";
  expect(await raw(path, smuggled)).toMatch(/^HTTP\/1\.1 400 /);
  expect(main.seen).toHaveLength(0);
});

test("closing ends what is open, and a path is used once", async () => {
  const path = await proxy();
  const egress = createEgress({ allow: [] });
  expect((await refusal(egress.listen(path))).code).toBe("conflict");
  expect((await refusal(egress.listen(join(folder, "x".repeat(200))))).code).toBe("bad_config");
  const going = tunnel(path, `echo.example.com:${echoPort}`, "", (text) => {
    if (text !== "") void open.splice(0)[0]?.close();
    return false;
  });
  expect(await going).toMatch(/^HTTP\/1\.1 200 /);
  await expect(raw(path, "GET / HTTP/1.1\r\n\r\n")).rejects.toThrow(/ENOENT|ECONNREFUSED/);
});
