import { PerdureError } from "../../../../base/error.ts";
import type { Capabilities, Egress, HostFunction, Json, SandboxFiles } from "../../sandbox.ts";
import type { World } from "../message.ts";

/** Names that would hide what the guest needs, or what the bridge puts there. */
const reserved = new Set([
  "__proto__",
  "files",
  "fetch",
  "env",
  "input",
  "console",
  "globalThis",
  "undefined",
  "await",
  "arguments",
]);
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

export type HostFunctions = Readonly<Record<string, Readonly<Record<string, HostFunction>>>>;

/** What the guest may call, and what it is told that it may. @throws PerdureError `bad_input` for names that cannot be */
export function hostFunctions(can: Capabilities | undefined): {
  readonly functions: HostFunctions;
  readonly world: World;
} {
  const functions: Record<string, Readonly<Record<string, HostFunction>>> = Object.create(null) as never;
  const tools: Record<string, readonly string[]> = {};
  for (const [namespace, named] of Object.entries(can?.tools ?? {})) {
    if (!IDENTIFIER.test(namespace) || namespace.startsWith("$") || reserved.has(namespace)) {
      throw new PerdureError("bad_input", `"${namespace}" cannot be the name of a namespace in the sandbox.`);
    }
    functions[namespace] = named;
    tools[namespace] = Object.keys(named);
  }
  const { files, network, env } = can ?? {};
  if (files !== undefined) functions.$files = fileFunctions(files.fs, files.mode);
  if (network !== undefined) functions.$net = { fetch: fetchFunction(network) };
  return {
    functions,
    world: {
      tools,
      files: files?.mode ?? null,
      network: network !== undefined,
      env: env === undefined ? null : { ...env },
    },
  };
}

function fileFunctions(fs: SandboxFiles, mode: "read" | "read-write"): Record<string, HostFunction> {
  const read: Record<string, HostFunction> = {
    readFile: async (args) => new TextDecoder().decode(await fs.readFileBytes(pathOf(args))),
    readFileBytes: async (args) => toBase64(await fs.readFileBytes(pathOf(args))),
    readDir: async (args) => (await fs.readDir(pathOf(args))).map(({ name, type }) => ({ name, type })),
    stat: async (args) => {
      const found = await fs.stat(pathOf(args));
      return found === null ? null : { type: found.type, size: found.size, mtimeMs: found.mtimeMs, mode: found.mode };
    },
  };
  if (mode === "read") return read;
  return {
    ...read,
    writeFile: async (args) => nothing(fs.writeFileBytes(pathOf(args), fromBase64(field(args, "bytes")))),
    appendFile: async (args) => nothing(fs.appendFileBytes(pathOf(args), fromBase64(field(args, "bytes")))),
    mkdir: async (args) => nothing(fs.mkdir(pathOf(args), { recursive: flag(args, "recursive") })),
    rm: async (args) =>
      nothing(fs.rm(pathOf(args), { recursive: flag(args, "recursive"), force: flag(args, "force") })),
    rename: async (args) => nothing(fs.rename(pathOf(args, "from"), pathOf(args, "to"))),
  };
}

async function nothing(done: Promise<void>): Promise<undefined> {
  await done;
  return undefined;
}

function fetchFunction(network: Egress): HostFunction {
  return async (args, { signal }) => {
    const body = field(args, "body");
    const method = field(args, "method");
    if (method !== undefined && typeof method !== "string")
      throw new PerdureError("bad_input", "method must be a string.");
    const headers: Record<string, string> = {};
    const given = field(args, "headers");
    for (const [name, value] of Object.entries(isObject(given) ? given : {})) headers[name] = textOf(value);
    const response = await network.fetch(textOf(field(args, "url")), {
      ...(method === undefined ? {} : { method }),
      headers,
      ...(body === undefined ? {} : { body: fromBase64(body) }),
      signal,
    });
    return {
      status: response.status,
      url: response.url,
      headers: { ...response.headers },
      body: toBase64(response.body),
    };
  };
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function field(args: Json | undefined, name: string): Json | undefined {
  return isObject(args) && Object.hasOwn(args, name) ? args[name] : undefined;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

function pathOf(args: Json, name = "path"): string {
  const path = field(args, name);
  if (typeof path === "string") return path;
  throw new PerdureError("bad_input", `${name} must be a string, such as "/notes.md".`);
}

function flag(args: Json, name: string): boolean {
  return field(field(args, "options"), name) === true;
}

function fromBase64(value: Json | undefined): Uint8Array {
  return new Uint8Array(Buffer.from(typeof value === "string" ? value : "", "base64"));
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
