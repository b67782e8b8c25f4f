import { PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/time.ts";
import { cutText } from "../../message/cut-value.ts";
import type { HostFunction, Json } from "../sandbox/sandbox.ts";
import { toPlainJson } from "../../tool/plain-json.ts";
import type { WorkspaceLike } from "../workspace/types.ts";
import { prefixOf } from "./guest.ts";
import type { ExtensionManifest } from "./manifest.ts";
import { mayRead, mayWrite } from "./permissions.ts";

/** A text that crosses the border, either way. */
const MAX_TEXT_CHARS = 1_000_000;
const MAX_PATH_CHARS = 1_024;
const MAX_LABEL_CHARS = 128;
const MAX_ENTRIES = 1_000;
const MAX_MESSAGES = 50;
/** What one message is cut to, in bytes. */
const MAX_MESSAGE_BYTES = 20_000;
const MAX_SENT_CHARS = 20_000;
/** An extension that answers itself must come to an end. */
const MAX_SENDS = 10;
const SENDS_WITHIN_MS = 10 * 60_000;

/** What the agent does for its extensions. What is absent, none of them can do. All may be slow and may throw. */
export interface ExtensionBridge {
  /** The agent's files. */
  readonly workspace?: WorkspaceLike | undefined;
  /** The text of a context block; null when there is none of that label. */
  getContext?(label: string): Promise<string | null> | string | null;
  setContext?(label: string, content: string): Promise<void> | void;
  /** Whether a block is the app's: it is no extension's own then, whatever its label is. Default: none is. */
  isOfApp?(label: string): Promise<boolean> | boolean;
  /** The newest messages of the conversation, oldest first. */
  getMessages?(limit: number): Promise<readonly unknown[]> | readonly unknown[];
  /** Sends a message as the user. Must not wait for its answer. */
  sendMessage?(text: string): Promise<void> | void;
  /** Which session it is and how long; may be a promise. */
  getSessionInfo?(): unknown;
}

/** The names of the functions, as guests call them. */
type BridgeFunction =
  | "readFile"
  | "listFiles"
  | "writeFile"
  | "deleteFile"
  | "getContext"
  | "setContext"
  | "getMessages"
  | "sendMessage"
  | "getSessionInfo";

/** Who calls, as it stands now: an extension may be gone, or asked for less, since its guest was made. */
interface BridgeOptions {
  /** When the extension has sent messages. It outlives the guest: loading the extension again forgives nothing. */
  readonly sends: number[];
  /** Undefined: it is not loaded any more. */
  manifest(): ExtensionManifest | undefined;
  bridge(): ExtensionBridge;
  readonly clock: Clock;
}

/** Which functions a manifest gets, if the agent can do them. */
export function functionsFor({ permissions = {} }: ExtensionManifest, bridge: ExtensionBridge): BridgeFunction[] {
  const { workspace, context, messages, session } = permissions;
  const files = bridge.workspace !== undefined;
  const reads = files && (workspace === "read" || workspace === "read-write");
  const writes = files && workspace === "read-write";
  const given: readonly (readonly [BridgeFunction, boolean])[] = [
    ["readFile", reads],
    ["listFiles", reads],
    ["writeFile", writes],
    ["deleteFile", writes],
    ["getContext", bridge.getContext !== undefined && (context?.read !== undefined || context?.write === "own")],
    ["setContext", bridge.setContext !== undefined && context?.write !== undefined],
    ["getMessages", bridge.getMessages !== undefined && messages === "read"],
    ["sendMessage", bridge.sendMessage !== undefined && session?.sendMessage === true],
    ["getSessionInfo", bridge.getSessionInfo !== undefined && session?.metadata === true],
  ];
  return given.flatMap(([name, has]) => (has ? [name] : []));
}

/** A guest's functions. Each call checks permissions again, and arguments like network input. Errors are for the extension. */
export function bridgeFunctions(
  names: readonly BridgeFunction[],
  options: BridgeOptions,
): Record<string, HostFunction> {
  const { sends } = options;
  const work: Record<BridgeFunction, (args: readonly Json[], at: Standing) => Promise<Json | undefined>> = {
    readFile: async ([path], at) => withinBounds(await at.files().readFile(pathIn(path))),
    listFiles: async ([path = "/"], at) => listing(await at.files().readDir(pathIn(path), { limit: MAX_ENTRIES })),
    async writeFile([path, content], at) {
      await at.files().writeFile(pathIn(path), textIn(content, "content"));
      return undefined;
    },
    async deleteFile([path], at) {
      await at.files().rm(pathIn(path));
      return undefined;
    },
    getContext: async ([label], { manifest, bridge }) => {
      const { permissions = {} } = manifest;
      const whole = labelIn(manifest, label);
      if (!mayRead(permissions, await ownAmong(manifest, bridge, whole), whole))
        throw denied(`read the context block ${JSON.stringify(whole)}`);
      return withinBounds((await bridge.getContext?.(whole)) ?? null);
    },
    setContext: async ([label, content], { manifest, bridge }) => {
      const whole = labelIn(manifest, label);
      if (!mayWrite(manifest.permissions ?? {}, await ownAmong(manifest, bridge, whole), whole)) {
        throw denied(`write the context block ${JSON.stringify(whole)}`);
      }
      await bridge.setContext?.(whole, textIn(content, "content"));
      return undefined;
    },
    getMessages: async ([limit = MAX_MESSAGES], { bridge }) => {
      const most = typeof limit === "number" && limit >= 1 ? Math.min(Math.floor(limit), MAX_MESSAGES) : MAX_MESSAGES;
      return ((await bridge.getMessages?.(most)) ?? []).slice(-most).map(messageOut);
    },
    sendMessage: async ([text], { bridge }) => {
      const said = textIn(text, "the message", MAX_SENT_CHARS);
      const now = options.clock.now();
      while ((sends[0] ?? now) <= now - SENDS_WITHIN_MS) sends.shift();
      if (sends.length >= MAX_SENDS) {
        throw new PerdureError(
          "limit",
          `An extension may send at most ${MAX_SENDS} messages in ten minutes. Wait, then try again.`,
        );
      }
      sends.push(now);
      await bridge.sendMessage?.(said);
      return undefined;
    },
    getSessionInfo: async (_, { bridge }) => toPlainJson(await bridge.getSessionInfo?.(), "The session") as Json,
  };
  const call =
    (name: BridgeFunction): HostFunction =>
    (args) => {
      const manifest = options.manifest();
      if (manifest === undefined) throw denied("do anything: it is not loaded, or has not been loaded yet");
      const bridge = options.bridge();
      if (!functionsFor(manifest, bridge).includes(name)) throw denied(`call ${name}`);
      const files = (): WorkspaceLike => {
        if (bridge.workspace === undefined) throw denied("use files: this agent has none");
        return bridge.workspace;
      };
      return work[name](Array.isArray(args) ? args : [], { manifest, bridge, files });
    };
  return Object.fromEntries(names.map((name) => [name, call(name)]));
}

interface Standing {
  readonly manifest: ExtensionManifest;
  readonly bridge: ExtensionBridge;
  files(): WorkspaceLike;
}

/** The whole labels of the blocks that a manifest declares. */
export function ownLabels({ name, context = [] }: ExtensionManifest): string[] {
  return context.map(({ label }) => `${prefixOf(name)}_${label}`);
}

/** Its own labels, without one that happens to be the label of a block of the app. */
async function ownAmong(manifest: ExtensionManifest, bridge: ExtensionBridge, whole: string): Promise<string[]> {
  const own = ownLabels(manifest);
  return own.includes(whole) && (await bridge.isOfApp?.(whole)) === true ? [] : own;
}

/** A block of its own may be called as the manifest calls it. */
function labelIn(manifest: ExtensionManifest, label: Json | undefined): string {
  const text = textIn(label, "the label", MAX_LABEL_CHARS);
  const isOwn = manifest.context?.some((block) => block.label === text) === true;
  return isOwn ? `${prefixOf(manifest.name)}_${text}` : text;
}

function pathIn(path: Json | undefined): string {
  const text = textIn(path, "the path", MAX_PATH_CHARS);
  if (text === "" || text.includes("\0")) throw new PerdureError("bad_input", "The path must not be empty.");
  return text.startsWith("/") ? text : `/${text}`;
}

function textIn(value: Json | undefined, what: string, most = MAX_TEXT_CHARS): string {
  if (typeof value !== "string") throw new PerdureError("bad_input", `Pass ${what} as a string, not ${typeof value}.`);
  if (value.length > most) throw new PerdureError("limit", `Pass ${what} with at most ${most} characters.`);
  return value;
}

function withinBounds(text: string | null): string | null {
  if (text !== null && text.length > MAX_TEXT_CHARS) {
    throw new PerdureError(
      "limit",
      `It has ${text.length} characters; extensions can read at most ${MAX_TEXT_CHARS} at once.`,
    );
  }
  return text;
}

function listing(entries: readonly { readonly name: string; readonly type: string; readonly size?: number }[]): Json {
  return entries
    .slice(0, MAX_ENTRIES)
    .map(({ name, type, size }) => ({ name, type, ...(size !== undefined && { size }) }));
}

/** A message as JSON, or the beginning of its text. */
function messageOut(message: unknown): Json {
  const plain = toPlainJson(message, "The message") as Json;
  const text = JSON.stringify(plain);
  return text.length <= MAX_MESSAGE_BYTES ? plain : { cut: cutText(text, MAX_MESSAGE_BYTES) };
}

function denied(what: string): PerdureError {
  return new PerdureError("not_allowed", `This extension may not ${what}.`);
}
