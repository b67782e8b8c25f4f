import { InOrder } from "../../base/in-order.ts";
import { systemClock } from "../../base/time.ts";
import type { ToolSet } from "ai";
import { withOrigin } from "../../context/capabilities.ts";
import { errorText, PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";
import type { AgentHost } from "../../port.ts";
import { extensionTool } from "./extension-tool.ts";
import { checkSource, type Described, oneLine, prefixOf, readDescription, toolNameOf } from "./guest.ts";
import { ExtensionHooks, type Listener } from "./hooks.ts";
import { ownLabels } from "./host-functions.ts";
import {
  checkManifest,
  type ExtensionContext,
  type ExtensionDeclaration,
  type ExtensionManifest,
  type ExtensionPermissions,
} from "./manifest.ts";
import { newWishes, wishesOf } from "./permissions.ts";
import { describedText, type ExtensionPreview, promptLines } from "./preview.ts";
import {
  deleteRecord,
  hashOf,
  readDeclared,
  readRecords,
  ShownExtensions,
  writeDeclared,
  writeRecord,
} from "./records.ts";
import { type ExtensionVm, makeVm, type VmOptions } from "./vm.ts";

/** Each brings tools into every prompt. */
const MAX_EXTENSIONS = 32;

/** A block of an extension stands in every prompt. */
const MAX_BLOCK_TOKENS = 2_000;

/** What an {@link ExtensionManager} is made of. */
export interface ExtensionManagerOptions extends VmOptions {
  /** Where loaded extensions are kept. Without it they are gone with the manager. */
  readonly host?: Pick<AgentHost, "sql" | "tx" | "clock" | "durable" | "keepAwake" | "blank">;
  /** Names of tools that extensions may not take. */
  reserved?(): Iterable<string>;
  /** Something failed that no caller is told of: a hook, a stored extension. Must not throw. */
  failed?(error: unknown): void;
}

/** Options of {@link ExtensionManager.load}. */
export interface LoadExtensionOptions {
  /** Only as {@link ExtensionManager.preview} has shown it. What is loaded already stays as it is. */
  readonly asShown?: boolean;
}

const NOT_SHOWN =
  "It was not loaded: nobody has agreed to it as it is now. Its source must describe itself the same way each time. Ask again.";

/** One extension as {@link ExtensionManager.list} shows it. */
export interface ExtensionInfo {
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  /** As the model calls them. */
  readonly tools: readonly string[];
  readonly hooks: readonly string[];
  /** Whole labels of the context blocks that it brings along. */
  readonly contextLabels: readonly string[];
  readonly permissions: ExtensionPermissions;
  /** `code`: it is declared by the app, and nobody can unload it. */
  readonly from: "code" | "loaded";
  readonly hash: string;
  /** Why its hooks are not called any more. */
  readonly off?: string;
}

interface Entry extends Listener {
  readonly manifest: ExtensionManifest;
  readonly described: Described;
  readonly hash: string;
  readonly agreed: readonly string[];
  readonly from: "code" | "loaded";
  readonly order: number;
}

/** JavaScript may bring anything, such as a binding of another platform. */
function checkLoader(loader: unknown): void {
  if (loader === true || typeof loader === "function" || (isRecord(loader) && isRecord(loader.supports))) return;
  throw new PerdureError(
    "bad_config",
    "ExtensionManager: loader must be true (the built-in sandbox), or a sandbox such as createQuickJsSandbox() " +
      "returns. There are no Worker loaders here.",
  );
}

const RESERVED = ["load_extension", "list_extensions", "unload_extension"];

/**
 * Keeps an agent's extensions: tools and hooks written by the app, by people or by the model. Each runs in its own sandbox and
 * can touch only what its permissions name. What is loaded is stored and survives restarts; its sandbox is made at first use.
 */
export class ExtensionManager {
  readonly #options: ExtensionManagerOptions;
  readonly #entries = new Map<string, Entry>();
  /** When each has sent messages, by its name. */
  readonly #sends = new Map<string, number[]>();
  /** Names under which tools were handed out: who merges them into others lists them as taken, and means these. */
  readonly #given = new Set<string>();
  readonly #shown: ShownExtensions;
  #restored = false;
  /** Loads are one after the other: each looks at the names that the others took. */
  readonly #order = new InOrder();
  /** What happens in turns, for whoever listens. */
  readonly hooks: ExtensionHooks;

  /** @throws PerdureError `bad_config` for a loader that cannot run code */
  constructor(options: ExtensionManagerOptions) {
    checkLoader(options.loader);
    this.#options = options;
    const { host } = options;
    this.#shown = new ShownExtensions(host);
    this.hooks = new ExtensionHooks({
      listeners: () => this.#sorted(),
      clock: host?.clock ?? systemClock,
      failed: (error) => this.#failed(error),
      keepAwake: (work) => host?.keepAwake(work) ?? work,
    });
  }

  /**
   * Loads an extension, replacing one of the same name. Stored before it resolves; on failure, what was there stays.
   * @throws PerdureError `bad_input` (what is wrong with manifest or source), `conflict` (a name is taken), `limit`
   */
  async load(manifest: ExtensionManifest, source: string, options: LoadExtensionOptions = {}): Promise<ExtensionInfo> {
    return this.#order.run(async () => {
      const checked = checkManifest(manifest);
      checkSource(source);
      this.restore();
      const known = this.#entries.get(checked.name);
      if (known?.from === "code")
        throw new PerdureError("conflict", `"${checked.name}" belongs to the app. Choose another name.`);
      if (known === undefined && this.#entries.size >= MAX_EXTENSIONS) {
        throw new PerdureError("limit", `There are ${MAX_EXTENSIONS} extensions. Unload one first.`);
      }
      this.#checkPrefix(checked);
      const hash = await hashOf(checked, source);
      if (options.asShown === true && known?.hash === hash) return toInfo(known);
      const { vm, described } = await this.#try(checked, source);
      if (options.asShown === true && this.#shown.get(hash) !== describedText(checked, described)) {
        await vm.close();
        throw new PerdureError("not_allowed", NOT_SHOWN);
      }
      const agreed = wishesOf(checked);
      const order = known?.order ?? Math.max(0, ...[...this.#entries.values()].map((entry) => entry.order)) + 1;
      const { host } = this.#options;
      if (host !== undefined) {
        host.tx(() => writeRecord(host, { manifest: checked, source, hash, agreed, described, order }));
      }
      this.#shown.set(hash, undefined);
      const entry = this.#add({ manifest: checked, described, hash, agreed, from: "loaded", order, vm });
      await known?.vm.close();
      await host?.durable();
      return toInfo(entry);
    });
  }

  /**
   * What to show before {@link ExtensionManager.load}: the source runs once, without permissions, to say what it brings. With
   * `asShown`, `load` accepts exactly that.
   * @throws PerdureError as `load` does
   */
  async preview(manifest: ExtensionManifest, source: string): Promise<ExtensionPreview> {
    return this.#order.run(async () => {
      const checked = checkManifest(manifest);
      checkSource(source);
      this.restore();
      const { name, version } = checked;
      const known = this.#entries.get(name);
      const hash = await hashOf(checked, source);
      // What fails now is not loaded for having been shown before.
      this.#shown.set(hash, undefined);
      this.#checkPrefix(checked);
      const about = { name, version, hash, ...(known !== undefined && { replaces: known.manifest.version }) };
      const wishes = wishesOf(checked);
      if (known?.hash === hash) {
        return { ...about, loaded: true, wishes, prompt: promptLines(checked, known.described) };
      }
      const { vm, described } = await this.#try(checked, source);
      await vm.close();
      this.#shown.set(hash, describedText(checked, described));
      return { ...about, loaded: false, wishes, prompt: promptLines(checked, described) };
    });
  }

  /** @returns false when there is none of that name. @throws PerdureError `not_allowed` for one that the app declares */
  async unload(name: string): Promise<boolean> {
    return this.#order.run(async () => {
      this.restore();
      const entry = this.#entries.get(name);
      if (entry === undefined) return false;
      if (entry.from === "code")
        throw new PerdureError("not_allowed", `"${name}" belongs to the app and cannot be unloaded.`);
      const { host } = this.#options;
      if (host !== undefined) host.tx(() => deleteRecord(host, name));
      this.#entries.delete(name);
      await entry.vm.close();
      await host?.durable();
      return true;
    });
  }

  /**
   * What the app declares, in order, before all that is loaded. Cheap if unchanged. Unusable ones go to `failed` and are left
   * out.
   */
  async declare(declared: readonly ExtensionDeclaration[]): Promise<void> {
    await this.#order.run(async () => {
      this.restore();
      const names = new Set<string>();
      for (const [index, one] of declared.entries()) {
        try {
          const manifest = checkManifest(one.manifest);
          if (names.has(manifest.name)) throw new PerdureError("conflict", `"${manifest.name}" is declared twice.`);
          names.add(manifest.name);
          await this.#declareOne(manifest, one.source, index - declared.length);
        } catch (thrown) {
          this.#failed(thrown);
        }
      }
      for (const [name, { from, vm }] of this.#entries) {
        if (from !== "code" || names.has(name)) continue;
        this.#entries.delete(name);
        await vm.close();
      }
    });
  }

  /** Reads what is stored, once; everything else does so by itself. Nothing runs before it is used. */
  restore(): void {
    if (this.#restored) return;
    this.#restored = true;
    const { host } = this.#options;
    if (host === undefined || host.blank) return;
    const failed = (name: string, error: unknown) =>
      this.#failed(
        new PerdureError("call_failed", `The stored extension "${name}" cannot be read: ${errorText(error)}`),
      );
    for (const record of readRecords(host, failed)) {
      this.#add({ ...record, from: "loaded", vm: this.#vm(record.manifest, record.source) });
    }
  }

  /** In load order. */
  list(): ExtensionInfo[] {
    this.restore();
    return this.#sorted().map(toInfo);
  }

  /**
   * The tools of all extensions, by `<extension>_<tool>`, without those whose names are taken by now.
   * @param reserved names that are taken where these tools go. Default: the option `reserved`
   */
  getTools(reserved: Iterable<string> = this.#options.reserved?.() ?? []): ToolSet {
    this.restore();
    const taken = new Set(this.#reserved(reserved));
    const tools: ToolSet = {};
    for (const { name, described } of this.#sorted()) {
      for (const tool of described.tools) {
        const called = toolNameOf(name, tool.name);
        if (taken.has(called)) continue;
        taken.add(called);
        this.#given.add(called);
        const made = extensionTool(name, tool, () => this.#entries.get(name)?.vm);
        tools[called] = withOrigin(made, { kind: "extension", name });
      }
    }
    return tools;
  }

  /** The context blocks that extensions bring along, by their whole labels. */
  contextBlocks(): (ExtensionContext & { readonly extension: string })[] {
    this.restore();
    return this.#sorted().flatMap(({ manifest }) => {
      const labels = ownLabels(manifest);
      return (manifest.context ?? []).map((block, index) => ({
        ...block,
        label: labels[index] ?? block.label,
        description: `[extension ${manifest.name}] ${oneLine(block.description ?? "")}`.trim(),
        maxTokens: Math.min(block.maxTokens ?? MAX_BLOCK_TOKENS, MAX_BLOCK_TOKENS),
        extension: manifest.name,
      }));
    });
  }

  /**
   * What a manifest asks for that nobody has agreed to, one line each. Nothing: it may be loaded without asking.
   * @throws PerdureError `bad_input` for a manifest that is none
   */
  newWishes(manifest: unknown): string[] {
    this.restore();
    const checked = checkManifest(manifest);
    return newWishes(wishesOf(checked), this.#entries.get(checked.name)?.agreed ?? []);
  }

  /** Ends all that runs. What is stored stays. */
  async dispose(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ vm }) => vm.close()));
  }

  async #declareOne(manifest: ExtensionManifest, source: string, order: number): Promise<void> {
    checkSource(source);
    const { host } = this.#options;
    const hash = await hashOf(manifest, source);
    const known = this.#entries.get(manifest.name);
    if (known?.from === "code" && known.hash === hash && known.order === order) return;
    // It takes the name from whoever has loaded something under it.
    this.#entries.delete(manifest.name);
    await known?.vm.close();
    this.#checkPrefix(manifest);
    const stored = host === undefined || host.blank ? undefined : readDeclared(host, manifest.name, hash);
    const made =
      stored === undefined ? await this.#try(manifest, source) : { described: stored, vm: this.#vm(manifest, source) };
    if (stored === undefined && host !== undefined) {
      host.tx(() => writeDeclared(host, manifest.name, hash, made.described));
    }
    this.#add({ manifest, hash, order, from: "code", agreed: wishesOf(manifest), ...made });
  }

  /** Runs a source for the first time. */
  async #try(manifest: ExtensionManifest, source: string): Promise<{ vm: ExtensionVm; described: Described }> {
    const vm = this.#vm(manifest, source);
    try {
      const described = readDescription(manifest, await vm.describe());
      this.#checkNames(manifest, described);
      return { vm, described };
    } catch (thrown) {
      await vm.close();
      throw thrown;
    }
  }

  #vm(manifest: ExtensionManifest, source: string): ExtensionVm {
    const isCurrent = (vm: ExtensionVm) => this.#entries.get(manifest.name)?.vm === vm;
    const sends = this.#sends.get(manifest.name) ?? [];
    this.#sends.set(manifest.name, sends);
    return makeVm(this.#options, manifest, source, { sends, isCurrent });
  }

  #add(entry: Omit<Entry, "name" | "hooks" | "failures" | "off">): Entry {
    const { manifest, described } = entry;
    const made: Entry = { ...entry, name: manifest.name, hooks: described.hooks, failures: 0, off: undefined };
    this.#entries.set(manifest.name, made);
    return made;
  }

  #checkPrefix(manifest: ExtensionManifest): void {
    const { name } = manifest;
    const labels = ownLabels(manifest);
    const others = [...this.#entries.values()].filter((entry) => entry.name !== name);
    const theirs = new Set(others.flatMap((entry) => ownLabels(entry.manifest)));
    const clash = labels.find((label, i) => theirs.has(label) || labels.indexOf(label) < i);
    if (clash !== undefined)
      throw new PerdureError("conflict", `The context block "${clash}" already exists. Rename it.`);
    const prefix = prefixOf(name).toLowerCase();
    const other = [...this.#entries.keys()].find((one) => one !== name && prefixOf(one).toLowerCase() === prefix);
    if (other !== undefined)
      throw new PerdureError("conflict", `"${name}" is too similar to "${other}". Choose another name.`);
  }

  #checkNames({ name }: ExtensionManifest, { tools }: Described): void {
    const others = [...this.#entries.values()].filter((entry) => entry.name !== name);
    const taken = new Set([
      ...this.#reserved(),
      ...others.flatMap((entry) => entry.described.tools.map((tool) => toolNameOf(entry.name, tool.name))),
    ]);
    const clash = tools.map((tool) => toolNameOf(name, tool.name)).find((called) => taken.has(called));
    if (clash === undefined) return;
    throw new PerdureError("conflict", `The tool "${clash}" already exists. Rename the tool or the extension.`);
  }

  #reserved(others: Iterable<string> = this.#options.reserved?.() ?? []): string[] {
    return [...RESERVED, ...[...others].filter((name) => !this.#given.has(name))];
  }

  #sorted(): Entry[] {
    return [...this.#entries.values()].toSorted((a, b) => a.order - b.order);
  }

  #failed(error: unknown): void {
    this.#options.failed?.(error);
  }
}

function toInfo({ manifest, described, hooks, from, hash, off }: Entry): ExtensionInfo {
  const { name, version, description, permissions = {} } = manifest;
  return {
    ...{ name, version, permissions, from, hash },
    ...(description !== undefined && { description }),
    tools: described.tools.map((tool) => toolNameOf(name, tool.name)),
    hooks: [...hooks],
    contextLabels: ownLabels(manifest),
    ...(off !== undefined && { off }),
  };
}
