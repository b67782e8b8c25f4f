import { expect, test } from "vitest";
import type { Cors } from "./cors.ts";
import { type Approach, originGate, type Origins } from "./origin.ts";

interface Case {
  readonly origins?: Origins;
  readonly cors?: Cors;
  readonly method?: string;
  readonly cookie?: string;
  readonly approach?: Approach;
}

function ask(
  host: string,
  origin: string | undefined,
  { origins, cors, method, cookie, approach }: Case = {},
): boolean {
  const headers = new Headers({ host });
  if (origin !== undefined) headers.set("origin", origin);
  if (cookie !== undefined) headers.set("cookie", cookie);
  const request = new Request("http://127.0.0.1/agents/a/b", { headers, method: method ?? "POST" });
  return originGate(origins, cors)(request, approach ?? "request") === "yes";
}

const OTHER = "https://evil.example";

test.each([
  "http://evil@app.example",
  "http://evil:pw@app.example",
  "https://app.example/evil",
  "https://app.example?evil",
])("what is no origin is not taken for one: %s", (origin) => {
  expect(ask("app.example", origin)).toBe(false);
  expect(ask("other.example", origin, { origins: ["http://app.example", "https://app.example"] })).toBe(false);
  expect(ask("app.example", "http://app.example")).toBe(true);
});

test.each([
  ["app.example", "https://app.example"],
  ["app.example", "http://app.example"],
  ["app.example:443", "https://app.example"],
  ["APP.example:8080", "http://app.example:8080"],
  ["localhost:8787", "http://localhost:5173"],
  ["127.0.0.1:8787", "http://localhost:5173"],
  ["localhost:8787", "http://127.0.0.1:3000"],
  ["127.0.0.1:8787", "https://page.localhost"],
  ["[::1]:8787", "http://127.8.9.10"],
  ["app.localhost:8787", "http://[::1]:1"],
  ["127.0.0.1:8787", undefined],
  ["app.example", undefined],
])("by default host %s lets in the page of %s", (host, origin) => {
  expect(ask(host, origin)).toBe(true);
  expect(ask(host, origin, { approach: "socket", method: "GET" })).toBe(true);
});

test.each([
  ["app.example", OTHER],
  ["app.example", "https://app.example:8443"],
  ["app.example", "https://sub.app.example"],
  ["app.example", "https://app.example.evil.example"],
  ["app.example", "http://localhost:5173"],
  ["localhost:8787", OTHER],
  ["localhost:8787", "https://localhost.evil.example"],
  ["localhost:8787", "https://notlocalhost"],
  ["127.0.0.1:8787", "https://127.0.0.1.evil.example"],
  ["127.0.0.1:8787", "http://10.0.0.1"],
  ["127.0.0.1:8787", "http://[::2]"],
  ["127.0.0.1:8787", "null"],
  ["127.0.0.1:8787", ""],
  ["127.0.0.1:8787", "nonsense"],
  ["127.0.0.1:8787", "http://localhost, https://evil.example"],
  ["localhost", "app://localhost"],
  ["192.168.1.5:8787", "http://192.168.1.5:5173"],
])("by default host %s keeps out the page of %s", (host, origin) => {
  expect(ask(host, origin)).toBe(false);
  expect(ask(host, origin, { approach: "socket", method: "GET" })).toBe(false);
});

test("only what could change something is asked about: sockets, and other methods than GET, HEAD and OPTIONS", () => {
  for (const method of ["GET", "HEAD", "OPTIONS"]) expect(ask("app.example", OTHER, { method }), method).toBe(true);
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "PURGE"]) {
    expect(ask("app.example", OTHER, { method }), method).toBe(false);
  }
});

test("a list lets in what it names, however it is spelled, beside what is let in anyway", () => {
  const origins = ["HTTPS://App.Example:443/", "null", "tauri://localhost"];
  for (const origin of ["https://app.example", "null", "tauri://localhost", "http://host.example"]) {
    expect(ask("host.example", origin, { origins }), origin).toBe(true);
  }
  for (const origin of ["http://app.example", "tauri://other", OTHER]) {
    expect(ask("host.example", origin, { origins }), origin).toBe(false);
  }
});

test("a function is asked about what is not let in anyway, with the origin and the request", () => {
  const asked: string[] = [];
  const origins: Origins = (origin, { url }) => {
    asked.push(`${origin} ${new URL(url).pathname}`);
    return origin.endsWith(".app.example");
  };
  expect(ask("app.example", "https://a.app.example", { origins })).toBe(true);
  expect(ask("app.example", OTHER, { origins })).toBe(false);
  expect(ask("app.example", "https://app.example", { origins })).toBe(true);
  expect(asked).toEqual(["https://a.app.example /agents/a/b", `${OTHER} /agents/a/b`]);
  const late = (() => Promise.resolve(false)) as unknown as Origins;
  expect(() => ask("app.example", OTHER, { origins: late })).toThrow("true or false, synchronously");
});

test('"any" lets in all, also those without an origin', () => {
  for (const origin of [OTHER, "null"]) {
    expect(ask("app.example", origin, { origins: "any", approach: "socket" }), origin).toBe(true);
  }
});

test("an origin that cors names is let in; cors for all is for requests without cookies", () => {
  const named = { "access-control-allow-origin": "https://app.example", vary: "origin" };
  expect(ask("host.example", "https://app.example", { cors: named, cookie: "a=1" })).toBe(true);
  expect(ask("host.example", "https://app.example", { cors: named, approach: "socket" })).toBe(true);
  expect(ask("host.example", OTHER, { cors: named })).toBe(false);
  for (const cors of [true, { "Access-Control-Allow-Origin": "*" }]) {
    expect(ask("host.example", OTHER, { cors })).toBe(true);
    expect(ask("host.example", OTHER, { cors, cookie: "a=1" })).toBe(false);
    expect(ask("host.example", OTHER, { cors, approach: "socket" })).toBe(false);
  }
  expect(ask("host.example", OTHER, { cors: false })).toBe(false);
});

test.each(["*", "app.example", "localhost:5173", "https://app.example/page", "https://*.app.example/?x", "", 7])(
  "%j in the list is no origin, and said so at once",
  (origin) => {
    expect(() => originGate([origin as string], undefined)).toThrow(/is not an origin/);
  },
);

test("the address counts where there is no Host header", () => {
  const request = (origin: string) => new Request("https://app.example/x", { method: "POST", headers: { origin } });
  const gate = originGate(undefined, undefined);
  expect([gate(request("https://app.example"), "request"), gate(request(OTHER), "request")]).toEqual(["yes", "no"]);
});
