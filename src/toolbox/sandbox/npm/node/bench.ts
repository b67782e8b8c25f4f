import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { PerdureError } from "../../../../base/error.ts";
import { rewriteImports } from "../../quickjs/rewrite-imports.ts";
import { isExact, type PackageList, packageOf } from "../package-names.ts";
import { createBundleProcess } from "./bundle-process.ts";
import type { BundleAnswer } from "./protocol.ts";

/** What bundling may use. */
export interface BundleLimits {
  /** Milliseconds of one step, in a process of its own that is ended then. */
  readonly timeoutMs: number;
  /** One package, as it goes into the sandbox. */
  readonly bundleBytes: number;
  /** What is kept for the next time, in memory. */
  readonly cacheBytes: number;
}

const MAX_CODE_CHARS = 1 << 20;
const MAX_PACKAGES = 20;

/** What a module is asked for by the code: these names, or whatever it uses of it. */
interface WantedNames {
  /** `undefined`: all of them. */
  readonly names: readonly string[] | undefined;
  /** What the code reads of anything, for modules that do not say what they export. */
  readonly hints: readonly string[];
}

const MAX_NAMES = 500;
const identifier = /^[A-Za-z_$][\w$]*$/;

/** Where bundles are made and kept. */
export function createBench(packages: PackageList, store: string, limits: BundleLimits) {
  const worker = createBundleProcess(limits.timeoutMs);
  const kept = createCache(limits.cacheBytes);
  const allowed = Object.keys(packages);

  const importsOf = async (code: string, modules: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const sources = [code, ...Object.values(modules)];
    if (sources.reduce((sum, { length }) => sum + length, 0) > MAX_CODE_CHARS) {
      throw new PerdureError("limit", `The code is longer than ${MAX_CODE_CHARS} characters.`);
    }
    const key = hash(["imports", sources, Object.keys(modules)]);
    const known = kept.get(key);
    if (known !== undefined) return JSON.parse(known) as string[];
    const answer = unwrap(await worker.run({ kind: "imports", sources, own: Object.keys(modules), store }));
    const imports = "imports" in answer ? answer.imports : [];
    kept.put(key, JSON.stringify(imports));
    return imports;
  };

  const check = (specifier: string): string => {
    const name = packageOf(specifier);
    if (name !== undefined && allowed.includes(name)) return name;
    const list =
      allowed.length === 0 ? "No packages can be imported here." : `These packages can: ${allowed.join(", ")}.`;
    throw new PerdureError("not_allowed", `"${specifier.slice(0, 200)}" cannot be imported. ${list}`);
  };

  const bundleOne = async (specifier: string, name: string, { names, hints }: WantedNames): Promise<string> => {
    const version = await installedVersion(store, name, packages[name] ?? true);
    const key = hash(["bundle", specifier, names ?? null, hints, version]);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const job = { kind: "bundle", specifier, names: names ?? null, hints, store, allowed } as const;
    const answer = unwrap(await worker.run(job), specifier);
    const source = "source" in answer ? answer.source : "";
    if (Buffer.byteLength(source) > limits.bundleBytes) {
      throw new PerdureError(
        "limit",
        `"${specifier}" is too large for the sandbox: more than ${limits.bundleBytes} bytes.`,
      );
    }
    kept.put(key, source);
    return source;
  };

  return {
    async bundle(code: string, modules: Readonly<Record<string, string>>): Promise<Record<string, string>> {
      const imports = await importsOf(code, modules);
      const wanted = imports.map((specifier) => [specifier, check(specifier)] as const);
      if (wanted.length > MAX_PACKAGES)
        throw new PerdureError("limit", `At most ${MAX_PACKAGES} packages can be imported.`);
      const made: Record<string, string> = {};
      for (const [specifier, name] of wanted) {
        // Of what several sources import, all is taken: which one wants what is not worth finding out.
        const alone = Object.keys(modules).length === 0;
        const names = wantedNames(alone ? code : [code, ...Object.values(modules)].join("\n"), specifier);
        made[specifier] = await bundleOne(specifier, name, alone ? names : { ...names, names: undefined });
      }
      return made;
    },
    close: () => worker.close(),
  };
}

function unwrap(answer: BundleAnswer, specifier?: string): Extract<BundleAnswer, { ok: true }> {
  if (answer.ok) return answer;
  const { code, message } = answer.fault;
  throw new PerdureError(code, specifier === undefined ? message : `"${specifier}" cannot be used here. ${message}`);
}

/** The version, and when it came: a package that was installed anew is bundled anew. */
async function installedVersion(store: string, name: string, wanted: string | true): Promise<string> {
  const path = join(store, "node_modules", name, "package.json");
  let version: unknown;
  let changed: number;
  try {
    ({ version } = JSON.parse(await readFile(path, "utf8")) as { version?: unknown });
    changed = (await stat(path)).mtimeMs;
  } catch {
    throw new PerdureError(
      "bad_config",
      `The package "${name}" is allowed, but it is not in the store. Run installPackages.`,
    );
  }
  if (isExact(wanted) && version !== wanted) {
    throw new PerdureError(
      "bad_config",
      `The store has "${name}" ${String(version)}, and ${wanted} is allowed. Run installPackages.`,
    );
  }
  return `${String(version)}@${changed}`;
}

function hash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

/** Keeps texts up to a size; the ones that were not used for longest go first. */
function createCache(maxChars: number) {
  const texts = new Map<string, string>();
  let size = 0;
  const drop = (key: string) => {
    size -= texts.get(key)?.length ?? 0;
    texts.delete(key);
  };
  return {
    get(key: string): string | undefined {
      const text = texts.get(key);
      if (text === undefined) return undefined;
      texts.delete(key);
      texts.set(key, text);
      return text;
    },
    put(key: string, text: string): void {
      drop(key);
      texts.set(key, text);
      size += text.length;
      for (const oldest of texts.keys()) {
        if (size <= maxChars) break;
        drop(oldest);
      }
    },
  };
}

/** Which names of `specifier` this code wants; `undefined`: all. Too many is harmless. Only a scan: the bundler decides. */
function wantedNames(code: string, specifier: string): WantedNames {
  const text = rewriteImports(code);
  const quoted = [`"${specifier}"`, `'${specifier}'`, `\`${specifier}\``];
  const mentions = quoted.reduce((count, one) => count + text.split(one).length - 1, 0);
  const names = new Set<string>();
  let taken = 0;
  for (const [, list = "", found = ""] of text.matchAll(/\bconst \{([^{}]*)\} = await import\((["'][^"']+["'])\)/g)) {
    if (!quoted.includes(found)) continue;
    taken += 1;
    for (const one of list.split(",")) {
      const name = (one.split(":")[0] ?? "").trim();
      if (name !== "" && !identifier.test(name)) return { names: undefined, hints: hintsOf(text) };
      if (name !== "") names.add(name);
    }
  }
  const all = taken === 0 || taken !== mentions || names.size > MAX_NAMES;
  return { names: all ? undefined : [...names].toSorted(), hints: all ? hintsOf(text) : [] };
}

function hintsOf(text: string): string[] {
  const names = new Set<string>();
  for (const [, name = ""] of text.matchAll(/(?:\.|[{,]\s*)([A-Za-z_$][\w$]*)/g)) {
    if (names.size >= MAX_NAMES) break;
    names.add(name);
  }
  names.delete("default");
  return [...names].toSorted();
}
