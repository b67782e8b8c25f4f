import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import { loadAiSdk } from "../base/ai-sdk.ts";
import { toBase64 } from "../base/bytes.ts";
import { fingerprint, shortFingerprint } from "../base/hash.ts";
import type { ModelMessages } from "../context/model-messages.ts";
import { isShownAsStored } from "../context/view.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import { addFrame, type FrameRow, type SentFacts, writeRequest } from "../store/frame.ts";
import { seqOfMessage } from "../store/message.ts";

/*
 * What is stored of a request, so that it can be shown later, byte for byte (`read-request.ts`): a digest of all of it, the name of
 * its frame, and where each of its messages is found. A list of such places is JSON:
 *
 *   [the call whose list this one continues, how many of its places, [further places], [places of the answer under way]]
 *
 *   "12.ab…"      all of the stored message 12, with a fingerprint of it as it is stored, and one as it was sent
 *   "@msg_…"      the answer that the next places are about
 *   ">0-5.ab…"    its first five parts
 *   "=hash"       a text of its own in `perdure_frame`: what is shown otherwise than it is stored
 *   "3=hash"      the same for the fourth message that the place before is sent as
 *
 * Two messages of a turn add some 30 bytes to a call, however long the conversation is.
 */

/** Texts that are stored for one call only because they are shown otherwise than they are stored, in characters. */
const MAX_OWN_CHARS = 256 * 1024;
/** Of how many sessions the places of the last call are remembered. */
const KEPT_LISTS = 16;
const CHECK_CHARS = 4;

/** Of a request that is about to be made. */
export interface RequestToBook {
  /** The session, or view, of the turn. */
  readonly session: string;
  /** Whose texts of its own they are. */
  readonly owner: string;
  readonly model: LanguageModel;
  readonly instructions: unknown;
  readonly tools: ToolSet;
  /** What else goes to the model, as JSON. */
  readonly settings: object;
  readonly messages: readonly ModelMessage[];
  /** The id of the answer under way. */
  readonly answerId: string;
  /** Where in the answer a message was made from begins. */
  readonly from: (source: UIMessage) => number;
  /** The message that one is sent in the place of. */
  readonly original: (message: ModelMessage) => ModelMessage;
}

/** What is stored of a request, in the transaction that books its call. */
interface DescribedRequest {
  /** @param cap the bound of the answer that a budget sets */
  facts(cap: number | null): SentFacts;
  /** @param seq the number of the call */
  store(seq: number): void;
}

interface Places {
  readonly seq: number;
  readonly list: readonly string[];
}

/** Writes down what models are sent. */
export class RequestBook {
  readonly #host: Pick<AgentHost, "sql" | "tx" | "afterTx">;
  readonly #messages: ModelMessages;
  /** Texts that are stored, as far as this life knows. */
  #stored = new Set<string>();
  readonly #lists = new Map<string, Places>();
  readonly #hashes = new WeakMap<ModelMessage, string>();
  readonly #texts = new Map<string, string>();
  readonly #tools = new WeakMap<object, string>();

  constructor(host: Pick<AgentHost, "sql" | "tx" | "afterTx">, messages: ModelMessages) {
    this.#host = host;
    this.#messages = messages;
  }

  /** Rows were deleted: nothing is known to be stored. */
  forget(): void {
    this.#stored = new Set();
    this.#lists.clear();
  }

  /** Readies what is to be stored. @returns undefined when a digest of it cannot be made */
  async describe(request: RequestToBook, caps: readonly (number | null)[] = [null]): Promise<DescribedRequest> {
    const { session, owner, messages } = request;
    const frames: FrameRow[] = [];
    const frame = await this.#frame(request, frames);
    const hashes = messages.map((message) => this.#hashOf(message));
    const { base, own } = this.#places(request, hashes, frames, owner);
    const before = this.#lists.get(session);
    const kept = before === undefined ? 0 : commonLength(before.list, base);
    const places = [kept === 0 ? 0 : (before?.seq ?? 0), kept, base.slice(kept), own];
    const chars = frames.reduce((sum, { kind, body }) => (kind === "message" ? sum + body.length : sum), 0);
    const isOpaque = chars > MAX_OWN_CHARS;
    const digests = new Map<number | null, string>();
    for (const cap of caps) digests.set(cap, digestOf(frame, cap, hashes));
    const texts = isOpaque ? frames.filter(({ kind }) => kind !== "message") : frames;
    return {
      facts: (cap) => ({
        requestDigest: digests.get(cap) ?? null,
        frame,
        request: isOpaque ? null : JSON.stringify(cap === null ? places : [...places, cap]),
      }),
      store: (seq) => {
        const added = texts.filter((text) => !this.#stored.has(nameOf(text)));
        for (const text of added) addFrame(this.#host, text);
        this.#host.afterTx((committed) => {
          if (!committed) return;
          for (const text of added) this.#stored.add(nameOf(text));
          this.#lists.delete(session);
          if (!isOpaque) this.#lists.set(session, { seq, list: base });
          const [oldest] = this.#lists.keys();
          if (this.#lists.size > KEPT_LISTS && oldest !== undefined) this.#lists.delete(oldest);
        });
      },
    };
  }

  /** Says of a call that was booked before what it is sent. In a transaction of its own. */
  write(id: string, seq: number, described: DescribedRequest, cap: number | null): void {
    this.#host.tx(() => {
      writeRequest(this.#host, id, described.facts(cap));
      described.store(seq);
    }, "commit");
  }

  async #frame({ instructions, tools, settings }: RequestToBook, frames: FrameRow[]): Promise<string> {
    const add = (kind: FrameRow["kind"], body: string) => {
      const hash = this.#nameOf(body);
      frames.push({ hash, session: "", kind, body });
      return hash;
    };
    const toolsText = await this.#toolsText(tools);
    const parts = [
      add("instructions", JSON.stringify(instructions ?? null)),
      ...[add("tools", toolsText), add("settings", JSON.stringify(settings))],
    ];
    return add("frame", JSON.stringify(parts));
  }

  /** Tools as models are told of them. */
  async toolsOf(tools: ToolSet): Promise<Record<string, unknown>> {
    return Object.fromEntries(JSON.parse(await this.#toolsText(tools)) as [string, unknown][]);
  }

  async #toolsText(tools: ToolSet): Promise<string> {
    const texts = await Promise.all(
      Object.entries(tools).map(async ([name, tool]) => {
        const known = this.#tools.get(tool);
        if (known !== undefined) return `[${JSON.stringify(name)},${known}]`;
        const text = JSON.stringify(await shownTool(tool));
        this.#tools.set(tool, text);
        return `[${JSON.stringify(name)},${text}]`;
      }),
    );
    return `[${texts.join(",")}]`;
  }

  /** Long texts of frames, such as a prompt, mostly come again. */
  #nameOf(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const name = shortFingerprint(text);
    if (this.#texts.size >= KEPT_LISTS) this.#texts.clear();
    this.#texts.set(text, name);
    return name;
  }

  #hashOf(message: ModelMessage): string {
    const known = this.#hashes.get(message);
    if (known !== undefined) return known;
    const hash = hashOfMessage(message);
    this.#hashes.set(message, hash);
    return hash;
  }

  #places(request: RequestToBook, hashes: readonly string[], frames: FrameRow[], owner: string) {
    const { messages, answerId, tools } = request;
    const base: string[] = [];
    const own: string[] = [];
    const whole = (at: number) => {
      const message = messages[at];
      if (message !== undefined)
        frames.push({ hash: hashes[at] ?? "", session: owner, kind: "message", body: textOf(message) });
      return `=${hashes[at] ?? ""}`;
    };
    const sourceAt = (at: number) => {
      const message = messages[at];
      return message && this.#messages.sourceOf(request.original(message));
    };
    for (let at = 0; at < messages.length;) {
      const source = sourceAt(at);
      let end = at + 1;
      while (source !== undefined && end < messages.length && sourceAt(end) === source) end++;
      const places = source?.id === answerId || own.length > 0 ? own : base;
      const place =
        source !== undefined && this.#messages.sizeOf(source) === end - at ? this.#placeOf(request, source) : undefined;
      if (place === undefined) for (let one = at; one < end; one++) places.push(whole(one));
      else {
        if (places === own && !own.includes(`@${answerId}`)) own.push(`@${answerId}`);
        places.push(`${place}${fingerprint(hashes.slice(at, end).join()).slice(-CHECK_CHARS)}`);
        const shown = source === undefined ? "stored" : isShownAsStored(source);
        for (let one = at; one < end; one++) {
          const message = messages[one];
          if (message === undefined) continue;
          const isOther = request.original(message) !== message || (shown === "outputs" && hasResult(message));
          if (isOther || hasOwnOutput(message, tools)) places.push(`${one - at}${whole(one)}`);
        }
      }
      at = end;
    }
    return { base, own };
  }

  /** Where a message is stored. Undefined: nowhere as it is shown. */
  #placeOf({ answerId, from }: RequestToBook, source: UIMessage): string | undefined {
    if (isShownAsStored(source) === undefined) return undefined;
    const check = fingerprint(JSON.stringify(source.parts)).slice(-CHECK_CHARS);
    if (source.id === answerId) {
      const begin = from(source);
      return `>${begin}-${begin + source.parts.length}.${check}`;
    }
    const seq = seqOfMessage(this.#host, source.id);
    return seq === undefined ? undefined : `${seq}.${check}`;
  }
}

/** The digest of a request: of its frame, the bound of its answer, and its messages. */
export function digestOf(frame: string, cap: number | null, hashes: readonly string[]): string {
  return shortFingerprint(JSON.stringify([frame, cap, ...hashes]));
}

/** What names a message of a request by its content. */
export function hashOfMessage(message: ModelMessage): string {
  return shortFingerprint(textOf(message));
}

/** The two fingerprints of a place, as it is stored and as it was sent. */
export function checksOf(parts: readonly unknown[], hashes: readonly string[]): { stored: string; sent: string } {
  return {
    stored: fingerprint(JSON.stringify(parts)).slice(-CHECK_CHARS),
    sent: fingerprint(hashes.join()).slice(-CHECK_CHARS),
  };
}

function nameOf({ hash, session }: FrameRow): string {
  return `${session} ${hash}`;
}

const FILES: ReadonlySet<string> = new Set(["file", "image", "reasoning-file"]);

/** A message as one text. Most have no bytes in them, and need not be looked through. */
function textOf(message: ModelMessage): string {
  return JSON.stringify(message, hasFile(message) ? bytesAsText : undefined);
}

function hasFile({ content }: ModelMessage): boolean {
  return typeof content !== "string" && content.some(({ type }) => FILES.has(type));
}

function bytesAsText(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  // Some bytes say themselves how they are written, as a number each.
  const given = this[key];
  return given instanceof Uint8Array ? { base64: toBase64(given) } : value;
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

function resultsOf(message: ModelMessage): { toolName: string }[] {
  if (typeof message.content === "string") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [part] : []));
}

function hasResult(message: ModelMessage): boolean {
  return resultsOf(message).length > 0;
}

/** Whether a tool says itself how the model reads an output in it. */
function hasOwnOutput(message: ModelMessage, tools: ToolSet): boolean {
  return resultsOf(message).some(({ toolName }) => tools[toolName]?.toModelOutput !== undefined);
}

/** A tool as the model is told of it. */
async function shownTool(tool: ToolSet[string]): Promise<object> {
  const { type, description, inputSchema, inputExamples, providerOptions, strict } = tool as ToolSet[string] & {
    description?: unknown;
  };
  if (type === "provider") return { type, id: tool.id, args: tool.args };
  const { asSchema } = await loadAiSdk();
  return {
    ...(typeof description === "string" && { description }),
    inputSchema: await asSchema(inputSchema as never).jsonSchema,
    ...{ inputExamples, providerOptions, strict },
  };
}
