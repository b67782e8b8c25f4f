import { expect, test } from "vitest";
import { sharedSandbox } from "./shared-sandbox.ts";

const { run, value, failure } = sharedSandbox();
const can = { tools: { tools: { add: () => 1 } } };

/** Each is a way to a `Function` constructor, which in a broken sandbox is the host's. */
const reachable = {
  "a function": "(function () {})",
  "an arrow": "(() => 1)",
  "an async function": "(async function () {})",
  "a generator": "(function* () {})",
  "an async generator": "(async function* () {})",
  "a class": "(class {})",
  "a method": "({ m() {} }).m",
  "a bound function": "(function () {}).bind(null)",
  "a tool": "tools.add",
  "a missing tool": "tools.nothing",
  "console.log": "console.log",
  setTimeout: "setTimeout",
  queueMicrotask: "queueMicrotask",
  "an error's constructor": "new Error('x').constructor",
  "the error of a tool": "await tools.nothing.call(null).catch?.(() => 0).constructor ?? (() => 1)",
  Object: "Object",
  Promise: "Promise",
  URL: "URL",
  Headers: "Headers",
  TextEncoder: "TextEncoder",
  structuredClone: "structuredClone",
  "crypto.getRandomValues": "crypto.getRandomValues",
  "an iterator's next": "[][Symbol.iterator]().next",
  "a getter": "Object.getOwnPropertyDescriptor(Map.prototype, 'size').get",
  "a proxy": "new Proxy(function () {}, {})",
  "JSON.parse": "JSON.parse",
};

test.each(Object.entries(reachable))("the constructor of %s knows no host", async (_name, expression) => {
  const result = await run(
    `let found; try { found = ${expression} } catch { found = () => 1 }
     const made = [];
     for (let at = found; at && made.length < 8; at = Object.getPrototypeOf(at)) {
       const make = at.constructor;
       if (typeof make !== "function") continue;
       let got;
       try { got = make("return typeof process + typeof require + typeof globalThis.process + typeof Buffer")() } catch (e) { got = "threw" }
       if (got && typeof got.then === "function") got = await got;
       if (got && typeof got.next === "function") got = (await got.next()).value;
       made.push(typeof got === "string" ? got : "object");
     }
     return made.filter((one) => one !== "threw" && one !== "object" && one !== "undefinedundefinedundefinedundefined");`,
    { can },
  );
  expect(result).toMatchObject({ status: "ok", value: [] });
});

test.each([
  "process",
  "require",
  "module",
  "exports",
  "Buffer",
  "global",
  "__dirname",
  "__filename",
  "setImmediate",
  "fetch",
  "files",
  "env",
  "WebAssembly",
  "Atomics",
  "Worker",
  "XMLHttpRequest",
  "WebSocket",
  "Deno",
  "Bun",
  "std",
  "os",
  "bjson",
  "print",
  "scriptArgs",
  "gc",
  "navigator",
  "window",
  "self",
  "importScripts",
  "SharedWorker",
  "MessageChannel",
  "BroadcastChannel",
  "Intl",
  "call",
  "log",
  "setTimer",
  "bootGuest",
])("there is no %s", async (name) => {
  expect(await value(`return typeof ${name === "exports" ? "globalThis.exports" : name}`)).toBe("undefined");
});

test("the globals are exactly these", async () => {
  const names = await value("return Reflect.ownKeys(globalThis).map(String).sort()");
  expect(names).toEqual([
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "Crypto",
    "CryptoKey",
    "DOMException",
    "DataView",
    "Date",
    "DisposableStack",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Headers",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "SharedArrayBuffer",
    "String",
    "SubtleCrypto",
    "SuppressedError",
    "Symbol",
    "Symbol(Symbol.toStringTag)",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "console",
    "crypto",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "globalThis",
    "input",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
    "unescape",
  ]);
});

test.each([
  "node:fs",
  "fs",
  "file:///etc/passwd",
  "/etc/passwd",
  "./lane-entry.ts",
  "../../../error.ts",
  "data:text/javascript,export default 1",
  "https://example.com/x.js",
  "quickjs-wasi",
  "",
])("import(%j) finds nothing", async (name) => {
  expect(await failure(`await import(${JSON.stringify(name)})`)).toMatch(
    /There is no module .*Nothing can be imported here/,
  );
});

test("an import at the beginning finds nothing either", async () => {
  expect(await failure('import fs from "node:fs";\nreturn fs.readFileSync("/etc/passwd")')).toMatch(
    /There is no module "node:fs"/,
  );
});

test.each([
  [
    "Error.prepareStackTrace sees no frames of the host",
    "let seen = []; Error.prepareStackTrace = (e, frames) => { seen.push(...(frames ?? []).map(String)); return '' }; try { null.x } catch (e) { void e.stack } return seen.filter((f) => /node:|lane|machine|\\.ts/.test(f)).length",
    0,
  ],
  ["a stack has no path of the host", "return /\\/|node:|\\.ts/.test(new Error('x').stack)", false],
  [
    "Error.captureStackTrace has no path of the host",
    "const o = {}; Error.captureStackTrace(o); return /node:|\\.ts|\\/src\\//.test(o.stack)",
    false,
  ],
  ["eval stays inside", "return (0, eval)('typeof process') + eval('typeof require')", "undefinedundefined"],
  ["new Function stays inside", "return new Function('return this === globalThis')()", true],
  ["this of the code is not the host's", "return typeof this", "undefined"],
  ["arguments of the code are empty", "return arguments.length", 0],
  [
    "callee and caller tell nothing",
    "function f() { try { return typeof f.caller } catch { return 'refused' } } return ['refused', 'object', 'undefined'].includes(f())",
    true,
  ],
  [
    "getters on Object.prototype see no host objects",
    "let seen = 0; Object.defineProperty(Object.prototype, 'then', { get() { if (typeof this.constructor === 'function' && this.constructor('return typeof process')?.() === 'object') seen++; }, configurable: true }); await 0; delete Object.prototype.then; return seen",
    0,
  ],
  [
    "Symbol.for is the guest's own",
    "return Symbol.for('perdure.sandbox.suspend').description",
    "perdure.sandbox.suspend",
  ],
  ["the time zone is UTC", "return new Date(0).getTimezoneOffset()", 0],
  [
    "a SharedArrayBuffer reaches nobody",
    "return typeof SharedArrayBuffer === 'function' ? new SharedArrayBuffer(8).byteLength : 8",
    8,
  ],
  [
    "WeakRef and FinalizationRegistry stay inside",
    "new FinalizationRegistry(() => 1).register({}, 1); const o = {}; return typeof new WeakRef(o).deref()",
    "object",
  ],
])("%s", async (_name, code, expected) => {
  expect(await value(code)).toEqual(expected);
});

test.each([
  ["function", "}); globalThis.out = 1; (async function () {"],
  ["arrow", ")); globalThis.out = 1; (() => ("],
  ["method", "} }); globalThis.out = 1; ({ async m() {"],
  ["next method", "}, async n() {"],
  ["next function", "}, async function () {"],
  ["operator", "} + async function f() {"],
  ["regular expression", "} / x /\n async function f() {"],
  ["comma", "}, (globalThis.out = 1), async function () {"],
  ["comment", "/* "],
  ["template", "`"],
  ["array", "1]]; globalThis.out = 1; [["],
  ["line separator", "}\u2028); globalThis.out = 1; (async function () {"],
])("code cannot close the frame around it: %s", async (_name, code) => {
  const result = await run(code);
  expect(result).toMatchObject({ status: "error", error: { name: "SyntaxError" } });
});

test.each(["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "prototype"])(
  "tools.%s is not a tool",
  async (name) => {
    expect(await failure(`return await tools[${JSON.stringify(name)}]()`, can)).toContain(
      `There is no tools.${name}. There are: add.`,
    );
  },
);

test("a namespace cannot be changed, and its functions lead nowhere", async () => {
  const code = `"use strict"; const was = tools.add; try { tools.add = () => 666 } catch {} try { delete tools.add } catch {}
    try { Object.setPrototypeOf(tools, { evil: 1 }) } catch {}
    return [tools.add === was, await tools.add({}), Object.keys(tools), Object.getPrototypeOf(tools)]`;
  expect(await value(code, can)).toEqual([true, 1, ["add"], null]);
});

test("what one run leaves behind is not there in the next", async () => {
  await run("globalThis.left = 1; Object.prototype.left = 1; Array.prototype.map = null; JSON.parse = null;");
  expect(await value("return [typeof left, typeof {}.left, [1].map((x) => x + 1), typeof JSON.parse]")).toEqual([
    "undefined",
    "undefined",
    [2],
    "function",
  ]);
});
