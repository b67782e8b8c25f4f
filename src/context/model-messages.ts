import type { ModelMessage, ToolSet } from "ai";
import { loadAiSdk } from "../base/ai-sdk.ts";
import { repairMessage } from "../message/repair.ts";
import { isToolPart, type Part, toolName, type UIMessage } from "../message/types.ts";
import { BUDGET_TOOL } from "../message/told-line.ts";
import { toolsFor } from "./cleared.ts";

type Failed = (error: unknown) => void;

/**
 * Stored messages as a model reads them. Each is converted once until it changes, so a turn costs what is new, and what was sent
 * is sent again byte for byte. Calls without a result get one: providers refuse a conversation that lacks it.
 */
export class ModelMessages {
  readonly #known = new WeakMap<UIMessage, ModelMessage[]>();
  readonly #sources = new WeakMap<ModelMessage, UIMessage>();
  readonly #sizes = new WeakMap<UIMessage, number>();
  readonly #failed: Failed;

  /** @param failed hears of outputs that their own tool could not show to a model. Must not throw. */
  constructor(failed: Failed = () => {}) {
    this.#failed = failed;
  }

  /** @param tools those of the turn: some say themselves how the model reads their output. */
  async of(messages: readonly UIMessage[], tools: ToolSet): Promise<ModelMessage[]> {
    return (await this.each(messages, tools)).flat();
  }

  /** The same, for each message apart. */
  async each(messages: readonly UIMessage[], tools: ToolSet): Promise<ModelMessage[][]> {
    const makeshift = new Map<UIMessage, ModelMessage[]>();
    const convert = async (message: UIMessage) => {
      let whole = true;
      const converted = await toModelMessages(message, tools, (thrown) => {
        whole = false;
        this.#failed(thrown);
      });
      this.#made(message, converted);
      if (whole) this.#known.set(message, converted);
      else makeshift.set(message, converted);
    };
    // Only what is new is waited for, and all of it together: none is left to fail unheard.
    await Promise.all(messages.filter((message) => !this.#known.has(message)).map(convert));
    return messages.map((message) => this.#known.get(message) ?? makeshift.get(message) ?? []);
  }

  /** The message that one of {@link ModelMessages.of} or {@link ModelMessages.once} was made from. */
  sourceOf(message: ModelMessage): UIMessage | undefined {
    return this.#sources.get(message);
  }

  /** One that will be another the next time: it is not remembered. */
  async once(message: UIMessage, tools: ToolSet): Promise<ModelMessage[]> {
    const converted = await toModelMessages(message, tools, this.#failed);
    this.#made(message, converted);
    return converted;
  }

  /** How many messages for the model were made from one. */
  sizeOf(message: UIMessage): number | undefined {
    return this.#sizes.get(message);
  }

  #made(message: UIMessage, converted: readonly ModelMessage[]): void {
    this.#sizes.set(message, converted.length);
    for (const one of converted) this.#sources.set(one, message);
  }
}

/**
 * One message as a model reads it, without data parts, empty texts and the budget's question. If `toModelOutput` throws, the
 * model reads the stored output: it may be older than the tool, or cut, and must not fail every later turn.
 */
export async function toModelMessages(
  message: UIMessage,
  tools: ToolSet,
  failed: Failed = () => {},
): Promise<ModelMessage[]> {
  const { role, metadata: _metadata, ...rest } = repairMessage(message);
  const parts = rest.parts.filter((part) => (part.type === "text" ? part.text !== "" : !isQuestion(part)));
  const said = [{ ...rest, role, parts: parts.map(withReadableData) }];
  const { convertToModelMessages } = await loadAiSdk();
  const converted = await convertToModelMessages(said, { tools: toolsFor(message, tools) }).catch((thrown: unknown) => {
    failed(thrown);
    return convertToModelMessages(said);
  });
  return converted.filter(({ content }) => typeof content === "string" || content.length > 0);
}

function isQuestion(part: Part): boolean {
  return isToolPart(part) && toolName(part) === BUDGET_TOOL;
}

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** A part fit for a model. The AI SDK reads any data URL as base64 and throws if it is not; an unreadable file becomes a text. */
export function withReadableData(part: Part): Part {
  if (part.type !== "file" || !part.url?.startsWith("data:")) return part;
  const at = part.url.indexOf(",");
  const head = part.url.slice(0, at);
  const data = part.url.slice(at + 1);
  if (at === -1) return unreadable(part.filename);
  if (/;base64$/i.test(head)) return BASE64.test(data) && data.length % 4 !== 1 ? part : unreadable(part.filename);
  try {
    return { ...part, url: `${head};base64,${toBase64(decodeURIComponent(data))}` };
  } catch {
    return unreadable(part.filename);
  }
}

function toBase64(text: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

function unreadable(filename: string | undefined): Part {
  return { type: "text", text: `[The file${filename === undefined ? "" : ` ${filename}`} cannot be read.]` };
}
