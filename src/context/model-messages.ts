import { convertToModelMessages, type ModelMessage, type ToolSet } from "ai";
import { repairMessage } from "../message/repair.ts";
import { isToolPart, type Part, toolName, type UIMessage } from "../message/types.ts";
import { BUDGET_TOOL } from "../message/told-line.ts";
import { toolsFor } from "./cleared.ts";

type Failed = (error: unknown) => void;

/**
 * Stored messages as a model reads them. Each is converted by itself and remembered as long as it does not change, so
 * a turn costs what is new, and what was sent once is sent again in the same bytes. Calls without a result get one:
 * a provider refuses a conversation with one that has none.
 */
export class ModelMessages {
  readonly #known = new WeakMap<UIMessage, ModelMessage[]>();
  readonly #sources = new WeakMap<ModelMessage, UIMessage>();
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
      for (const one of converted) this.#sources.set(one, message);
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
    for (const one of converted) this.#sources.set(one, message);
    return converted;
  }
}

/**
 * One message as a model reads it. Left out is what is not said to it: data parts, empty texts, the budget's question.
 * Where a tool's `toModelOutput` throws, the model reads the outputs as they are stored: they may be older than the tool,
 * or cut, and would make every later turn fail.
 */
export async function toModelMessages(
  message: UIMessage,
  tools: ToolSet,
  failed: Failed = () => {},
): Promise<ModelMessage[]> {
  const { role, metadata: _metadata, ...rest } = repairMessage(message);
  const parts = rest.parts.filter((part) => (part.type === "text" ? part.text !== "" : !isQuestion(part)));
  const said = [{ ...rest, role, parts: parts.map(withReadableData) }];
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

/**
 * A part as it can be given to a model. The AI SDK takes what a data URL holds for base64, marked so or not, and throws
 * when it is none: a file that is written out becomes base64, and one that cannot be read a text that says so.
 */
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
