import { Worker } from "node:worker_threads";
import { jsonSchema, tool } from "ai";
import { SUSPEND, type Json, type ParkingSandbox, type RunResult } from "perdure/sandbox";
import { createExecuteTool, createQuickJsSandbox } from "perdure/tools";
import type { Figure } from "../foundation/section.ts";
import { bestInTurns } from "./best.ts";
import { callBare, CODE, compileEngine, evaluateBare } from "./guest.ts";

const ROUNDS = 9;
const RUNS = 20;
const CALLS = 2_000;
const PARKS = 10;
const limits = { toolCalls: CALLS + 1, cpuMs: 60_000 };
const SECOND = 1_000;

const add = (args: Json): number => {
  const { a, b } = args as { a: number; b: number };
  return a + b;
};
const can = { tools: { tools: { add } } };
const inSequence = `let sum = 0; for (let i = 0; i < ${CALLS}; i++) sum = await tools.add({ a: sum, b: 1 }); return sum;`;
const inParallel = `const all = Array.from({ length: ${CALLS} }, (_, a) => tools.add({ a, b: 1 })); return (await Promise.all(all)).length;`;

/** Code in the sandbox beside the engine alone: warm runs, tool calls, runs that are parked. */
export async function measureCode(): Promise<Figure[]> {
  const sandbox = createQuickJsSandbox();
  const wasm = await compileEngine();
  await sandbox.run({ language: "ts", code: CODE });
  try {
    return [...(await warmRuns(sandbox, wasm)), ...(await toolCalls(sandbox, wasm)), ...(await parkedRuns(sandbox))];
  } finally {
    await sandbox.dispose();
  }
}

async function warmRuns(sandbox: ParkingSandbox, wasm: WebAssembly.Module): Promise<Figure[]> {
  const execute = executeWith(sandbox);
  const bare = () => each(RUNS, () => evaluateBare(wasm));
  const plain = await bestInTurns(
    "lowest",
    ROUNDS,
    () => each(RUNS, () => sandbox.run({ language: "ts", code: CODE })),
    bare,
  );
  const tools = await bestInTurns("lowest", ROUNDS, () => each(RUNS, () => execute(CODE)), bare);
  const against = "quickjs-wasi on the main thread, a fresh engine per run";
  return [
    { what: "`sandbox.run`, warm", unit: "ms", ...plain, against },
    { what: "`execute`, warm", unit: "ms", ...tools, against },
  ];
}

async function toolCalls(sandbox: ParkingSandbox, wasm: WebAssembly.Module): Promise<Figure[]> {
  const run = (code: string) => async () => {
    const begun = performance.now();
    const result = await sandbox.run({ language: "js", code, can, limits });
    if (result.status !== "ok" || result.value !== CALLS) throw new Error(`A run ended as ${result.status}.`);
    return perSecond(begun);
  };
  const execute = executeWith(sandbox);
  const bare = async () => (CALLS * SECOND) / (await callBare(wasm, CALLS));
  const direct = async () => {
    const begun = performance.now();
    let sum = 0;
    for (let i = 0; i < CALLS; i++) sum = await Promise.resolve(add({ a: sum, b: 1 }));
    return perSecond(begun);
  };
  const nested = async () => {
    const begun = performance.now();
    await execute(inSequence);
    return perSecond(begun);
  };
  const engine = "quickjs-wasi on the main thread, JSON both ways";
  const unit = "calls/s";
  const thread = new Worker(new URL("./echo-thread.ts", import.meta.url));
  const there = await bestInTurns("highest", ROUNDS, run(inSequence), () => messages(thread));
  await thread.terminate();
  return [
    { what: "tool calls, each awaited", unit, against: "a message to a thread and back", ...there },
    {
      ...{ what: "the same", unit, against: engine },
      ...(await bestInTurns("highest", ROUNDS, run(inSequence), bare)),
    },
    {
      ...{ what: "tool calls, all at once", unit, against: engine },
      ...(await bestInTurns("highest", ROUNDS, run(inParallel), bare)),
    },
    {
      ...{ what: "tools of `execute`, each awaited", unit, against: engine },
      ...(await bestInTurns("highest", ROUNDS, nested, bare)),
    },
    {
      ...{ what: "the function itself, called and awaited, for scale", unit, ours: await direct() },
    },
  ];
}

async function parkedRuns(sandbox: ParkingSandbox): Promise<Figure[]> {
  const asks = { tools: { person: { ask: (): typeof SUSPEND => SUSPEND } } };
  const code = `const answer = await person.ask(); ${CODE}`;
  const warm = () => each(PARKS, () => sandbox.run({ language: "js", code: CODE }));
  const park = () => sandbox.run({ language: "js", code, can: asks });
  const snapshots = await Promise.all(Array.from({ length: PARKS }, async () => snapshotOf(await park())));
  let next = 0;
  const resume = async () => {
    const { snapshot, call } = snapshots[next++ % PARKS] ?? { snapshot: new Uint8Array(), call: 0 };
    const result = await sandbox.resume(snapshot, [{ call, value: true }], { can: asks });
    if (result.status !== "ok") throw new Error(`A run that went on ended as ${result.status}.`);
  };
  const against = "a warm run that ends";
  return [
    {
      what: "a run until it is parked",
      unit: "ms",
      ...(await bestInTurns("lowest", ROUNDS, () => each(PARKS, park), warm)),
      against,
    },
    {
      what: "the rest of it, from its snapshot",
      unit: "ms",
      ...(await bestInTurns("lowest", ROUNDS, () => each(PARKS, resume), warm)),
      against,
    },
    { what: "snapshot of a parked run", unit: "KiB", ours: (snapshots[0]?.snapshot.length ?? 0) / 1024 },
  ];
}

function snapshotOf(result: RunResult): { snapshot: Uint8Array; call: number } {
  if (result.status !== "suspended") throw new Error(`A run ended as ${result.status} and was not parked.`);
  return { snapshot: result.snapshot, call: result.calls[0]?.call ?? 0 };
}

/** The tool that a model calls, called. */
function executeWith(sandbox: ParkingSandbox): (code: string) => Promise<unknown> {
  const inputSchema = jsonSchema<{ a: number; b: number }>({
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
  });
  const made = createExecuteTool({
    tools: { add: tool({ description: "Adds.", inputSchema, execute: async (input) => add({ ...input }) }) },
    sandbox,
    limits,
  });
  return async (code) => {
    const output: unknown = await made.execute?.({ code }, { toolCallId: "bench", messages: [], context: {} });
    if (JSON.stringify(output).includes('"error"')) throw new Error(JSON.stringify(output));
    return output;
  };
}

/** The way there and back, as often, with nothing at the other end. */
async function messages(thread: Worker): Promise<number> {
  const begun = performance.now();
  for (let call = 0; call < CALLS; call++) {
    await new Promise((resolve) => {
      thread.once("message", resolve);
      thread.postMessage({ type: "call", call, args: '{"a":1,"b":1}' });
    });
  }
  return perSecond(begun);
}

/** Milliseconds of one of so many. */
async function each(count: number, work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  for (let i = 0; i < count; i++) await work();
  return (performance.now() - begun) / count;
}

function perSecond(begun: number): number {
  return (CALLS * SECOND) / (performance.now() - begun);
}
