import type { UIMessage } from "../message/types.ts";
import type { ClientTool } from "../wire/frames.ts";
import type { JsonObject } from "../wire/json.ts";

/** What a person asked for. */
export type ChatTrigger = "submit-message" | "regenerate-message";

/** A tool that runs here. */
export interface ChatTool {
  readonly description?: string;
  /** JSON Schema of the input. */
  readonly parameters?: object;
  /** The older name of `parameters`. */
  readonly inputSchema?: object;
  /** Runs the tool. May be slow; what it throws becomes the tool's error. */
  readonly execute?: (input: never) => unknown;
}

/** A {@link ChatTool} that says what it takes and gives. */
export interface AITool<Input = unknown, Output = unknown> extends Omit<ChatTool, "execute"> {
  /** Runs the tool. May be slow; what it throws becomes the tool's error. */
  readonly execute?: (input: Input) => Output | Promise<Output>;
}

/** Data for the agent, with a request. */
export type ChatBodySource = object | (() => object | Promise<object>);

/** What the agent is told of tools that run here; undefined when there are none. */
export function clientToolsOf(tools: Readonly<Record<string, ChatTool>> | undefined): ClientTool[] | undefined {
  const list: ClientTool[] = [];
  for (const [name, { execute, description, parameters, inputSchema }] of Object.entries(tools ?? {})) {
    if (execute === undefined) continue;
    const schema = parameters ?? inputSchema;
    list.push({
      name,
      ...(description !== undefined && { description }),
      ...(schema !== undefined && { parameters: schema as JsonObject }),
    });
  }
  return list.length > 0 ? list : undefined;
}

/**
 * What to send of a conversation: the last message, and those right before it that could not be sent (`unsent`). The agent has
 * the rest, and takes none of it from clients. A regenerate is cut behind it, an edit replaces it, and an answer as the last one
 * means "go on".
 */
function newMessages(messages: readonly UIMessage[], unsent?: ReadonlySet<string>): UIMessage[] {
  const last = messages.at(-1);
  if (last === undefined) return [];
  if (last.role !== "user") return [{ id: last.id, role: last.role, parts: [] }];
  const known = messages.findLastIndex(({ id }, at) => at < messages.length - 1 && unsent?.has(id) !== true);
  return messages.slice(known + 1);
}

/** The body of a request. Later ones of `bodies` win over earlier ones. */
export function requestBody(
  messages: readonly UIMessage[],
  trigger: ChatTrigger,
  tools: readonly ClientTool[] | undefined,
  bodies: readonly (object | undefined)[],
  unsent?: ReadonlySet<string>,
): Record<string, unknown> {
  return {
    ...Object.assign({}, ...bodies.filter((body) => body !== undefined)),
    messages: newMessages(messages, unsent),
    trigger,
    ...(tools !== undefined && { clientTools: tools }),
  };
}

/** Asks for the value of a {@link ChatBodySource}; a promise only when it has to be waited for. */
export function bodyOf(source: ChatBodySource | undefined): object | undefined | Promise<object> {
  return typeof source === "function" ? (source as () => object | Promise<object>)() : source;
}
