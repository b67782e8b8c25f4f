import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { QuickJS } from "quickjs-wasi";

/** A small piece of code as a model writes it, as the body of a function. */
export const CODE = `const rows = Array.from({ length: 50 }, (_, id) => ({ id, price: (id * 37) % 100 }));
const dear = rows.filter((row) => row.price > 50).sort((a, b) => b.price - a.price);
return { count: dear.length, ids: dear.slice(0, 5).map((row) => row.id) };`;

const MEMORY_BYTES = 64 << 20;

/** The engine alone, as whoever uses the package without us would load it. */
export async function compileEngine(): Promise<WebAssembly.Module> {
  const file = createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm");
  return WebAssembly.compile(readFileSync(file));
}

/** {@link CODE} in a fresh engine on this thread. */
export async function evaluateBare(wasm: WebAssembly.Module): Promise<unknown> {
  using vm = await QuickJS.create({ wasm, memoryLimit: MEMORY_BYTES });
  using result = vm.evalCode(`JSON.stringify((() => {${CODE}})())`);
  return JSON.parse(result.toString()) as unknown;
}

/** So many calls of a host function that answers at once, JSON both ways, each awaited. @returns milliseconds of the calls */
export async function callBare(wasm: WebAssembly.Module, calls: number): Promise<number> {
  using vm = await QuickJS.create({ wasm, memoryLimit: MEMORY_BYTES });
  using add = vm.newFunction("host", (text) => {
    const { a, b } = JSON.parse(text?.toString() ?? "") as { a: number; b: number };
    return vm.newString(JSON.stringify(a + b));
  });
  vm.setProp(vm.global, "host", add);
  const begun = performance.now();
  using sum = vm.evalCode(`const add = async (args) => JSON.parse(host(JSON.stringify(args)));
(async () => { let sum = 0; for (let i = 0; i < ${calls}; i++) sum = await add({ a: sum, b: 1 }); return sum; })()`);
  vm.executePendingJobs();
  const settled = await vm.resolvePromise(sum);
  if (!("value" in settled) || settled.value.consume((value) => value.toNumber()) !== calls) {
    throw new Error("The engine counted wrong.");
  }
  return performance.now() - begun;
}
