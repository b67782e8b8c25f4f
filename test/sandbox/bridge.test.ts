import { expect, test } from "vitest";
import type { Capabilities, Json, SandboxFiles } from "perdure/sandbox";
import { sharedSandbox } from "./shared-sandbox.ts";

const { run, value, failure, stillWorks } = sharedSandbox();

const echo: Capabilities = { tools: { tools: { echo: (args) => args, nothing: () => undefined } } };

test.each<[string, Json]>([
  ["null", null],
  ["numbers", [0, -1, 1.5, 1e300]],
  ["texts", ["", "\u0000", "\ud83d\ude00", "\u2028", "\ud800".toWellFormed()]],
  ["nested", { a: [{ b: { c: [] } }] }],
  ["keys", { "": 1, "a.b": 2, constructor: 3, toString: 4 }],
])("JSON goes there and back: %s", async (_name, sent) => {
  expect(await value(`return await tools.echo(${JSON.stringify(sent)})`, echo)).toEqual(sent);
  expect((await run("return input", { input: sent })).status).toBe("ok");
});

test("no argument is null, no result is undefined", async () => {
  expect(await value("return [await tools.echo(), typeof (await tools.nothing())]", echo)).toEqual([null, "undefined"]);
});

test("__proto__ in an argument stays a key of its own", async () => {
  let seen: unknown;
  const can: Capabilities = { tools: { tools: { take: (args) => void (seen = args) } } };
  await run(
    `await tools.take(JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}'))`,
    { can },
  );
  expect(Object.keys(seen as object)).toEqual(["__proto__", "constructor"]);
  expect((seen as { polluted?: unknown }).polluted).toBeUndefined();
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test("__proto__ in a result stays a key of its own", async () => {
  const got = await value(`return JSON.parse('{"__proto__": {"polluted": 1}}')`);
  expect(Object.keys(got as object)).toEqual(["__proto__"]);
  expect((got as { polluted?: unknown }).polluted).toBeUndefined();
});

test("__proto__ in an answer is a key of its own in the guest", async () => {
  const can: Capabilities = { tools: { tools: { give: () => JSON.parse('{"__proto__": {"x": 1}}') as Json } } };
  expect(await value("const got = await tools.give(); return [Object.keys(got), got.x === undefined]", can)).toEqual([
    ["__proto__"],
    true,
  ]);
});

/** Whatever the guest does to its builtins, the bridge has its own. */
const patches = [
  "JSON.stringify = () => 'forged'; JSON.parse = () => 'forged'",
  "Promise.prototype.then = () => { throw 1 }",
  "Promise.prototype.then = function () { return this }; Promise.prototype.catch = null",
  "Promise.resolve = () => { throw 1 }; Promise.reject = null",
  "globalThis.Promise = class { constructor() { throw 1 } }",
  "Array.prototype[Symbol.iterator] = function* () { yield 'forged' }",
  "Array.prototype.push = Array.prototype.join = Array.prototype.map = () => { throw 1 }",
  "Map.prototype.get = Map.prototype.set = Map.prototype.delete = () => { throw 1 }",
  "Object.prototype.toJSON = undefined; Object.hasOwn = Object.create = Object.defineProperty = null",
  "Reflect.apply = Reflect.get = Reflect.ownKeys = () => { throw 1 }",
  "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 1 }",
  "String.prototype.split = String.prototype.slice = () => { throw 1 }",
  "globalThis.Error = globalThis.TypeError = globalThis.Proxy = null",
  "Object.defineProperty(Object.prototype, 'resolve', { set() { throw 1 }, get() { throw 1 } })",
  "Object.defineProperty(Object.prototype, '0', { set() { throw 1 } })",
  "Object.defineProperty(Object.prototype, 'get', { get() { throw 1 }, configurable: true }); delete Object.prototype.get",
  "Symbol.iterator; Number.prototype.valueOf = String.prototype.valueOf = () => { throw 1 }",
  "Object.setPrototypeOf(Object.getPrototypeOf(async () => {}), null)",
  "globalThis.input = globalThis.console = globalThis.setTimeout = null",
];
test.each(patches)("patched builtins change nothing: %s", async (patch) => {
  expect(
    await value(`${patch}; const a = await tools.echo({ n: 1 }); return { got: a.n + 1, list: [1, 2] }`, echo),
  ).toEqual({ got: 2, list: [1, 2] });
});

const outcomes = (...allowed: string[]) => allowed;
test.each([
  ["a getter that throws", "return { get x() { throw new Error('from a getter') } }", outcomes("error")],
  ["a getter that loops", "return { get x() { for (;;) {} } }", outcomes("limit")],
  ["toJSON that loops", "return { toJSON() { for (;;) {} } }", outcomes("limit")],
  ["toJSON that lies", "return { toJSON() { return 'other' } }", outcomes("ok")],
  ["toJSON on every object", "Object.prototype.toJSON = () => 'forged'; return {}", outcomes("ok")],
  ["a proxy that throws", "return new Proxy({}, { ownKeys() { throw 1 } })", outcomes("error")],
  ["a proxy that loops", "return new Proxy({}, { ownKeys() { for (;;) {} } })", outcomes("limit")],
  [
    "a proxy of endless keys",
    "return new Proxy({}, { ownKeys: () => Array.from({ length: 1e5 }, (_, i) => 'k' + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) })",
    outcomes("ok", "limit"),
  ],
  [
    "a revoked proxy",
    "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy }",
    outcomes("error"),
  ],
  ["a thenable", "return { then(resolve) { resolve('seen') } }", outcomes("ok")],
  ["a thenable that throws", "return { then() { throw new Error('no') } }", outcomes("error")],
  ["a thenable that does nothing", "return { then() {} }", outcomes("error")],
  ["a circle", "const a = {}; a.a = a; return a", outcomes("error")],
  ["a bigint", "return 1n", outcomes("error")],
  ["a symbol", "return Symbol('x')", outcomes("ok")],
  ["a function in a list", "return [() => 1, undefined, NaN]", outcomes("ok")],
  ["throw null", "throw null", outcomes("error")],
  ["throw undefined", "throw undefined", outcomes("error")],
  ["throw a symbol", "throw Symbol('x')", outcomes("error")],
  ["throw a bigint", "throw 10n", outcomes("error")],
  ["throw a function", "throw () => 1", outcomes("error")],
  ["throw an object with getters", "throw { get message() { throw 1 }, get name() { throw 2 } }", outcomes("error")],
  ["throw a getter that loops", "throw { get message() { for (;;) {} } }", outcomes("limit")],
  ["throw a proxy", "throw new Proxy({}, { get() { throw 1 }, has() { throw 1 } })", outcomes("error")],
  ["throw a circle", "const a = {}; a.a = a; throw a", outcomes("error")],
  ["throw a long message", "throw new Error('x'.repeat(1e6))", outcomes("error")],
  [
    "throw a stack that is a lie",
    "const e = new Error('x'); e.stack = 'at code.js:99999:1 /etc/passwd'; throw e",
    outcomes("error"),
  ],
  ["throw a stack that is an object", "const e = new Error('x'); e.stack = {}; throw e", outcomes("error")],
  ["a rejection that nobody handles", "Promise.reject(new Error('lost')); return 1", outcomes("ok")],
  [
    "an error in a timer",
    "setTimeout(() => { throw new Error('late') }, 1); await new Promise((r) => setTimeout(r, 20)); return 1",
    outcomes("ok"),
  ],
  ["a timer of no function", "setTimeout('evil()', 1)", outcomes("error")],
])("on the way out: %s", async (_name, code, allowed) => {
  const result = await run(code, { limits: { cpuMs: 150, wallMs: 5_000 } });
  expect(allowed).toContain(result.status);
  expect(JSON.stringify(result)).not.toMatch(/node:internal|lane-entry|guest-vm/);
  await stillWorks();
});

test("a circular argument is an error of the guest, not of the host", async () => {
  expect(await failure("const a = {}; a.a = a; await tools.echo(a)", echo)).toMatch(/^TypeError: circular/);
});

test("a tool's error has its message and nothing else of the host", async () => {
  const can: Capabilities = {
    tools: {
      tools: {
        fail: () => {
          throw new Error("the disk is full");
        },
      },
    },
  };
  const seen = await value(
    "try { await tools.fail() } catch (e) { return [e instanceof Error, e.message, /\\.ts|node:|\\/src\\//.test(e.stack), Object.keys(e)] }",
    can,
  );
  expect(seen).toEqual([true, "the disk is full", false, []]);
});

test.each<[string, () => never]>([
  [
    "null",
    () => {
      throw null as unknown as Error;
    },
  ],
  [
    "an object",
    () => {
      throw { secret: 1 } as unknown as Error;
    },
  ],
  [
    "an error with a getter",
    () => {
      throw Object.defineProperty(new Error("x"), "message", {
        get: () => {
          throw new Error("inner");
        },
      });
    },
  ],
])("a tool that throws %s fails the call, not the host", async (_name, fail) => {
  expect(["error", "ok"]).toContain(
    (await run("try { await tools.fail() } catch (e) { return e.message }", { can: { tools: { tools: { fail } } } }))
      .status,
  );
  await stillWorks();
});

test("a tool's result that is no JSON is an error of the call", async () => {
  const can: Capabilities = { tools: { tools: { big: () => 1n as unknown as Json } } };
  expect(await failure("await tools.big()", can)).toContain("The result of tools.big is not JSON.");
});

test("an answer after the end is nobody's", async () => {
  let answer: (value: Json) => void = () => undefined;
  const can: Capabilities = {
    tools: { tools: { slow: async () => new Promise<Json>((resolve) => (answer = resolve)) } },
  };
  expect(await value("tools.slow(); return 'done'", can)).toBe("done");
  answer("late");
  await stillWorks();
});

test("a tool that is not there is named with those that are", async () => {
  const can: Capabilities = {
    tools: { github: { listIssues: () => [], readIssue: () => null }, mail: { send: () => null } },
  };
  expect(await failure("await github.deleteRepo({})", can)).toContain(
    "There is no github.deleteRepo. There are: listIssues, readIssue.",
  );
});

test.each(["__proto__", "a-b", "1a", "", "files", "fetch", "$net", "$files", "console", "globalThis"])(
  "%j cannot be a namespace",
  async (name) => {
    await expect(run("return 1", { can: { tools: { [name]: {} } } })).rejects.toMatchObject({ code: "bad_input" });
  },
);

test("names of tools that are no identifiers can be called by index", async () => {
  expect(await value("return await tools['read-file']({})", { tools: { tools: { "read-file": () => "text" } } })).toBe(
    "text",
  );
});

test("env is there, frozen, and only what was given", async () => {
  const code = "'use strict'; try { env.A = 2 } catch {} return env";
  expect(await value(code, { env: { A: "1" } })).toEqual({ A: "1" });
});

const stored = new Map<string, Uint8Array>();
const fs: SandboxFiles = {
  readFileBytes: async (path) => {
    const found = stored.get(path);
    if (found === undefined) throw new Error(`ENOENT: ${path}`);
    return found;
  },
  writeFileBytes: async (path, bytes) => void stored.set(path, bytes),
  appendFileBytes: async (path, bytes) =>
    void stored.set(path, new Uint8Array([...(stored.get(path) ?? []), ...bytes])),
  readDir: async () => [...stored.keys()].map((name) => ({ name: name.slice(1), type: "file" as const })),
  stat: async (path) =>
    stored.has(path) ? { type: "file", size: stored.get(path)?.length ?? 0, mtimeMs: 0, mode: 0o644 } : null,
  lstat: async () => null,
  mkdir: async () => undefined,
  rm: async (path) => void stored.delete(path),
  rename: async (from, to) => {
    const bytes = stored.get(from);
    if (bytes !== undefined) stored.set(to, bytes);
    stored.delete(from);
  },
  symlink: async () => undefined,
  readlink: async () => "",
  chmod: async () => undefined,
  utimes: async () => undefined,
};

test("files are read and written, as text and as bytes", async () => {
  const code = `await files.writeFile("/a", "h\u00e9"); await files.appendFile("/a", new Uint8Array([33]));
    await files.writeFile("/b", new Uint8Array([0, 255])); await files.rename("/b", "/c"); const bytes = await files.readFileBytes("/c");
    const all = [await files.readFile("/a"), [...bytes], await files.exists("/b"), await files.stat("/x"), (await files.stat("/c")).size, (await files.readDir("/")).length];
    await files.rm("/c"); return all;`;
  expect(await value(code, { files: { fs, mode: "read-write" } })).toEqual(["h\u00e9!", [0, 255], false, null, 2, 2]);
  expect([...stored.keys()]).toEqual(["/a"]);
});

test("read alone has no function that writes, and the host refuses what is forged", async () => {
  const can: Capabilities = { files: { fs, mode: "read" } };
  expect(await value("return Object.keys(files)", can)).toEqual([
    "readFile",
    "readFileBytes",
    "readDir",
    "stat",
    "exists",
  ]);
  expect(await failure("await files.writeFile('/a', 'x')", can)).toMatch(/^TypeError/);
});

test("a file that is not there, or no path, is an error of the guest", async () => {
  const can: Capabilities = { files: { fs, mode: "read" } };
  expect(await failure("await files.readFile('/nope')", can)).toContain("ENOENT");
  expect(await failure("await files.readFile({ evil: 1 })", can)).toContain("path must be a string");
});

test("a file that is too large is an error that the guest can handle", async () => {
  stored.set("/large", new Uint8Array(5_000).fill(65));
  const result = await run("try { await files.readFile('/large') } catch (e) { return e.message }", {
    can: { files: { fs, mode: "read" } },
    limits: { toolBytes: 1_000 },
  });
  expect(result).toMatchObject({ status: "ok", value: expect.stringContaining("1000 are allowed") as string });
});

test("fetch asks the egress, and only the egress", async () => {
  const asked: unknown[] = [];
  const network = {
    listen: async () => ({ close: async () => undefined }),
    fetch: async (
      url: string,
      request?: { method?: string; headers?: Readonly<Record<string, string>>; body?: Uint8Array | string },
    ) => {
      if (url.includes("evil")) throw new Error("evil.example is not allowed");
      asked.push([url, request?.method, request?.headers, new TextDecoder().decode(request?.body as Uint8Array)]);
      return {
        status: 201,
        url,
        headers: { "content-type": "application/json" },
        body: new TextEncoder().encode('{"ok":true}'),
      };
    },
  };
  const code = `const r = await fetch(new URL("https://api.example/x"), { method: "POST", headers: { "X-A": "1" }, body: JSON.stringify({ q: 1 }) });
    let refused; try { await fetch("https://evil.example") } catch (e) { refused = e.message }
    return [r.ok, r.status, r.headers.get("content-type"), await r.json(), (await r.text()).length, (await r.bytes()).length, refused]`;
  expect(await value(code, { network })).toEqual([
    true,
    201,
    "application/json",
    { ok: true },
    11,
    11,
    "evil.example is not allowed",
  ]);
  expect(asked).toEqual([["https://api.example/x", "POST", { "x-a": "1" }, '{"q":1}']]);
});

test("what is printed has a level, an order and a shape", async () => {
  const result = await run(
    "console.log('a', 1, { b: [2] }, undefined, null, new TypeError('t')); console.warn('w'); console.error('e'); console.debug(() => 1); console.info(Symbol('s'))",
  );
  expect(result.logs).toEqual([
    { level: "log", text: 'a 1 {"b":[2]} undefined null TypeError: t' },
    { level: "warn", text: "w" },
    { level: "error", text: "e" },
    { level: "debug", text: "[function ]" },
    { level: "info", text: "Symbol(s)" },
  ]);
});

test("a listener that throws has no say in the run", async () => {
  const result = await run("console.log('a'); return 1", {
    onLog: () => {
      throw new Error("no");
    },
  });
  expect(result).toMatchObject({ status: "ok", value: 1, logs: [{ text: "a" }] });
});
