import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { CompiledEngine } from "../message.ts";
import { capMemory } from "./cap-memory.ts";

/** The engine's own files, in the order in which they are loaded: images depend on it. */
const ENGINE_FILES = [
  "quickjs.wasm",
  "url.so",
  "encoding.so",
  "headers.so",
  "crypto.so",
  "structured-clone.so",
] as const;

const PAGE = 65_536;
/** What the engine itself, its stack and its extensions take beside the guest's heap. */
const OVERHEAD_MB = 12;
const KEPT_MODULES = 4;

const require = createRequire(import.meta.url);
let files: Promise<readonly Buffer<ArrayBuffer>[]> | undefined;
let hash: Promise<string> | undefined;
let extensions: Promise<CompiledEngine["extensions"]> | undefined;
const modules = new Map<number, Promise<WebAssembly.Module>>();

/** Where the engine is installed. @throws when it is not */
function engineFolder(): string {
  return dirname(require.resolve("quickjs-wasi/package.json"));
}

/** Where the engine is installed, by every name that leads to it: some package managers link packages, and a link is read before what it leads to. */
export function engineFolders(): string[] {
  const links = (require.resolve.paths("quickjs-wasi") ?? []).map((folder) => join(folder, "quickjs-wasi"));
  return [...new Set([engineFolder(), ...links.filter((link) => existsSync(link))])];
}

async function engineFiles(): Promise<readonly Buffer<ArrayBuffer>[]> {
  files ??= Promise.all(ENGINE_FILES.map(async (name) => readFile(require.resolve(`quickjs-wasi/${name}`))));
  return files;
}

/** SHA-256 of each file, hexadecimal. */
export async function engineHashes(): Promise<Readonly<Record<string, string>>> {
  const all = await engineFiles();
  return Object.fromEntries(
    ENGINE_FILES.map((name, index) => [
      name,
      createHash("sha256")
        .update(all[index] ?? "")
        .digest("hex"),
    ]),
  );
}

/** One hash for the whole engine: a memory image fits exactly one build. */
export async function engineHash(): Promise<string> {
  // Megabytes, which stay what they are: once is enough.
  hash ??= engineFiles().then((all) => {
    const sum = createHash("sha256");
    for (const file of all) sum.update(file);
    return sum.digest("hex");
  });
  return hash;
}

/** The engine whose memory cannot grow over `memoryMB`, whatever happens inside. */
export async function loadEngine(memoryMB: number): Promise<CompiledEngine> {
  const [main, ...others] = await engineFiles();
  if (main === undefined) throw new Error("The engine has no main file.");
  extensions ??= Promise.all(
    others.map(async (bytes, index) => ({
      name: (ENGINE_FILES[index + 1] ?? "").replace(/\.so$/, ""),
      wasm: await WebAssembly.compile(bytes),
    })),
  );
  let wasm = modules.get(memoryMB);
  if (wasm === undefined) {
    wasm = WebAssembly.compile(capMemory(main, ((memoryMB + OVERHEAD_MB) << 20) / PAGE));
    modules.set(memoryMB, wasm);
    for (const key of modules.keys()) if (modules.size > KEPT_MODULES) modules.delete(key);
  }
  return { wasm: await wasm, extensions: await extensions };
}
