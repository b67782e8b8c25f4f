import { expect, test } from "vitest";
import type { Capabilities } from "perdure/sandbox";
import { sharedSandbox } from "./shared-sandbox.ts";

const { run, stillWorks } = sharedSandbox({ limits: { memoryMB: 32 } });
const LIMITS = { wallMs: 5_000, cpuMs: 100, memoryMB: 32, toolCalls: 50, outputBytes: 100_000, toolBytes: 10_000 };
/** Bounds, not speeds: what would be seconds, or gigabytes, if the host were not protected. */
const MOST_LAG_MS = 2_000;
const MOST_GROWTH_BYTES = 400 << 20;
const MOST_TIME_MS = 25_000;

/** Runs something hostile, and looks at what the host felt of it. */
async function unharmed(attack: () => Promise<void>): Promise<void> {
  const memory = process.memoryUsage.rss();
  let worst = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
  }, 5);
  const began = performance.now();
  await attack();
  clearInterval(timer);
  expect(performance.now() - began).toBeLessThan(MOST_TIME_MS);
  expect(worst).toBeLessThan(MOST_LAG_MS);
  expect(process.memoryUsage.rss() - memory).toBeLessThan(MOST_GROWTH_BYTES);
  await stillWorks();
}

type Ending = readonly string[];
const TIME: Ending = ["limit:cpu", "limit:wall"];
const MEMORY: Ending = ["limit:memory", "error", "limit:cpu", "limit:wall"];
const STACK: Ending = ["limit:stack", "error", ...TIME];

const cases: readonly (readonly [string, string, Ending])[] = [
  ["a loop", "for (;;) {}", TIME],
  ["a loop that catches", "for (;;) { try { for (;;) {} } catch {} finally { continue } }", TIME],
  ["a loop in finally", "try { for (;;) {} } finally { for (;;) {} }", TIME],
  ["a loop of microtasks", "for (;;) await 0", TIME],
  ["a chain of microtasks", "await new Promise(() => { const f = () => Promise.resolve().then(f); f() })", TIME],
  [
    "many chains of microtasks",
    "await new Promise(() => { const f = () => Promise.resolve().then(f); for (let i = 0; i < 1000; i++) f() })",
    TIME,
  ],
  ["queueMicrotask forever", "await new Promise(() => { const f = () => queueMicrotask(f); f() })", TIME],
  ["a thenable that loops", "return { then(resolve) { for (;;) {} } }", TIME],
  ["a thenable that resolves to itself again and again", "const t = () => ({ then(r) { r(t()) } }); return t()", TIME],
  ["an async generator without end", "async function* g() { for (;;) yield 1 } for await (const x of g());", TIME],
  ["a promise that never settles", "await new Promise(() => {})", ["error"]],
  ["a timer without end", "await new Promise(() => setInterval(() => {}, 1))", TIME],
  ["a timer that sets itself", "await new Promise(() => { const f = () => setTimeout(f, 0); f() })", TIME],
  [
    "a loop in a timer",
    "setTimeout(() => { for (;;) {} }, 1); await new Promise(() => setInterval(() => {}, 1))",
    TIME,
  ],
  [
    "too many timers",
    "for (let i = 0; i < 1e5; i++) setTimeout(() => {}, 1e6); await new Promise(() => {})",
    ["limit:toolCalls"],
  ],
  ["a slow regular expression", "return /^(a+)+$/.test('a'.repeat(40) + 'b')", TIME],
  ["a slow regular expression with a back reference", "return /(x+x+)+y\\1/.test('x'.repeat(60))", TIME],
  ["a power of a bigint", "return String(7n ** 20000000n).length", [...TIME, ...MEMORY]],
  ["bigints that grow", "let x = 3n; for (;;) x *= x", [...TIME, ...MEMORY]],
  ["a builtin that nobody can interrupt", "return new Array(2 ** 30).join('x').length", [...TIME, ...MEMORY]],
  ["another builtin that nobody can interrupt", "return new Array(2 ** 32 - 1).indexOf(1)", [...TIME, ...MEMORY, "ok"]],
  ["a huge sparse array", "const a = []; a[2 ** 32 - 2] = 1; return a.reverse().length", [...TIME, ...MEMORY, "ok"]],
  [
    "a sort of too much",
    "const a = []; for (let i = 0; i < 3e6; i++) a.push(i * 7919 % 104729); a.sort(); return a.length",
    [...TIME, ...MEMORY],
  ],
  ["a sort with a loop", "[3, 2, 1].sort(() => { for (;;) {} })", TIME],
  ["a bomb of arrays", "const a = []; for (;;) a.push(new Array(1e5).fill(1))", MEMORY],
  ["a filled array", "return new Array(4e8).fill(1).length", MEMORY],
  ["a bomb of strings", "let s = 'x'; for (;;) s += s + Math.random()", MEMORY],
  ["a repeated string", "const a = []; for (;;) a.push('x'.repeat(1e7) + a.length)", MEMORY],
  ["a padded string", "return 'x'.padStart(2 ** 29).length", MEMORY],
  ["a replaced string", "return 'a'.repeat(2 ** 24).replace(/a/g, 'bb').length", [...TIME, ...MEMORY]],
  ["a bomb of typed arrays", "const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))", MEMORY],
  ["one huge buffer", "return new ArrayBuffer(2 ** 31).byteLength", MEMORY],
  [
    "a buffer that grows",
    "const b = new ArrayBuffer(8, { maxByteLength: 2 ** 31 }); b.resize(2 ** 31); return b.byteLength",
    [...MEMORY],
  ],
  ["a bomb of a map", "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })", MEMORY],
  ["a bomb of a set", "const m = new Set(); for (let i = 0; ; i++) m.add('k' + i)", MEMORY],
  ["a bomb of properties", "const o = {}; for (let i = 0; ; i++) o['k' + i] = i", MEMORY],
  ["a bomb of symbols", "const o = []; for (;;) o.push(Symbol('x'.repeat(100)))", MEMORY],
  ["a bomb of closures", "const o = []; for (;;) { const big = new Array(1000); o.push(() => big) }", MEMORY],
  ["a bomb of promises", "const o = []; for (;;) o.push(new Promise(() => {}))", MEMORY],
  ["a bomb of clones", "let o = [1]; for (;;) o = structuredClone([o, o])", [...TIME, ...MEMORY, "limit:stack"]],
  ["a bomb of encoded text", "const a = []; for (;;) a.push(new TextEncoder().encode('x'.repeat(1e6)))", MEMORY],
  ["a bomb that is caught", "const a = []; for (;;) { try { a.push(new Array(1e5).fill(1)) } catch {} }", MEMORY],
  ["recursion", "const f = () => f() + 1; return f()", STACK],
  [
    "recursion that is caught",
    "const f = () => { try { return f() + 1 } catch { return f() } }; return f()",
    [...STACK, ...TIME],
  ],
  ["recursion through a getter", "const o = { get x() { return this.x + 1 } }; return o.x", STACK],
  ["recursion through a proxy", "const p = new Proxy({}, { get: (t, k) => p[k] }); return p.x", STACK],
  ["recursion through toString", "const o = { toString() { return '' + o } }; return '' + o", STACK],
  ["recursion through JSON", "const o = { toJSON() { return JSON.stringify(o) } }; return JSON.stringify(o)", STACK],
  ["recursion through sort", "const f = () => [2, 1].sort(f); f()", STACK],
  [
    "recursion through a regular expression",
    "return new RegExp('('.repeat(1e4) + ')'.repeat(1e4)).test('')",
    [...STACK, ...MEMORY],
  ],
  ["deep JSON to parse", "return JSON.parse('['.repeat(1e5))", STACK],
  ["deep code to parse", "return eval('['.repeat(1e5))", [...STACK, ...MEMORY]],
  ["a deep result", "let o = {}; for (let i = 0; i < 3e4; i++) o = { o }; return o", STACK],
  ["a deep argument", "let o = {}; for (let i = 0; i < 3e4; i++) o = { o }; await tools.echo(o)", STACK],
  ["a large result", "return 'x'.repeat(2e5)", ["limit:output"]],
  ["a large result of small things", "return new Array(1e5).fill('xx')", ["limit:output"]],
  ["one large line", "console.log('x'.repeat(2e5))", ["limit:output"]],
  ["many lines", "for (let i = 0; ; i++) console.log('line', i)", ["limit:output"]],
  ["empty lines", "for (;;) console.log('')", ["limit:output"]],
  ["lines of wide characters", "console.log('\u20ac'.repeat(5e4))", ["limit:output"]],
  ["tool calls without end", "for (;;) await tools.echo(1)", ["limit:toolCalls"]],
  ["tool calls at once", "await Promise.all(Array.from({ length: 1000 }, () => tools.echo(1)))", ["limit:toolCalls"]],
  ["tool calls that nobody waits for", "for (;;) tools.echo(1)", ["limit:toolCalls"]],
  ["a large argument", "await tools.echo('x'.repeat(2e4))", ["limit:toolBytes"]],
  ["a large answer", "await tools.large()", ["limit:toolBytes"]],
  ["a tool that never answers", "await tools.never()", ["limit:wall"]],
  [
    "computing that adds up over tool calls",
    "for (let i = 0; i < 40; i++) { await tools.echo(1); for (let j = 0; j < 3e6; j++); }",
    TIME,
  ],
];

/** Ended by the clock alone: nothing else can. */
const clocked = /interrupt$|sparse|interval|never answers|(?<!calls )without end$/;

const can: Capabilities = {
  tools: {
    tools: {
      echo: (args) => args,
      large: () => "x".repeat(20_000),
      never: async () => new Promise<never>(() => undefined),
    },
  },
};

test.each(cases)("%s", async (name, code, endings) => {
  const limits = clocked.test(name) ? { ...LIMITS, wallMs: 300 } : LIMITS;
  await unharmed(async () => {
    const result = await run(code, { limits, can });
    expect(endings).toContain(result.status === "limit" ? `limit:${result.limit}` : result.status);
  });
});

test("what was printed before a lane had to be killed is there", async () => {
  const result = await run("console.log('before'); return new Array(2 ** 30).join('x')", {
    limits: { ...LIMITS, wallMs: 300 },
  });
  expect(result.logs).toEqual([{ level: "log", text: "before" }]);
});

test("a limit says which, and the number", async () => {
  const result = await run("return 'x'.repeat(2e5)", { limits: LIMITS });
  expect(result).toMatchObject({
    status: "limit",
    limit: "output",
    message: expect.stringContaining("100000") as string,
  });
});

test.each([
  { wallMs: 0 },
  { cpuMs: -1 },
  { memoryMB: Number.NaN },
  { toolCalls: Number.POSITIVE_INFINITY },
  { outputBytes: "9" as unknown as number },
])("a limit that is none is refused: %j", async (limits) => {
  await expect(run("return 1", { limits })).rejects.toMatchObject({ code: "bad_input" });
});

test.each([
  ["deep brackets", "(".repeat(1e5)],
  ["deep types", `let x: ${"Array<".repeat(5e4)}`],
  ["deep objects", `return ${'{"a":'.repeat(5e4)}`],
  ["an enum and deep brackets", `enum A { B } return ${"[".repeat(1e4)}`],
  ["type arguments without end", "a<".repeat(1e5)],
  ["an import without end", `import { ${"a, ".repeat(5e4)}`],
])("source that is made to break a compiler: %s", async (_name, code) => {
  await unharmed(async () => {
    const result = await run(code, { language: "ts", limits: { ...LIMITS, wallMs: 2_000 } });
    expect(["error", "limit"]).toContain(result.status);
  });
});

test("code that breaks what takes its types off breaks it for nobody else", async () => {
  const typed = "const six: number = 6; return (six as number) * 7";
  const deep = `const x: number = 1; return ${"(".repeat(150_000)}`;
  // As often as there are lanes, and once more.
  for (let n = 0; n < 3; n++) {
    expect(await run(deep, { language: "ts" })).toMatchObject({
      ...{ status: "limit", limit: "stack" },
      message: expect.stringContaining("nested too deeply") as string,
    });
    expect(await run(typed, { language: "ts" })).toMatchObject({ status: "ok", value: 42 });
  }
  const modules = { "deep.ts": deep };
  await run('try { await import("deep.ts") } catch {} return 1', { modules });
  expect(await run(typed, { language: "ts" })).toMatchObject({ status: "ok", value: 42 });
});
