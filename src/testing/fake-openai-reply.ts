import { newId } from "../base/id.ts";
import { pause } from "../base/time.ts";

/** What the model of a {@link fakeOpenAI} says in one request. A piece below is one event of a streamed answer. */
export interface FakeReply {
  /** One delta, or several. */
  readonly text?: string | readonly string[];
  /** As most servers send it that are not OpenAI itself: in `reasoning_content`. */
  readonly reasoning?: string | readonly string[];
  readonly toolCalls?: readonly FakeToolCall[];
  /** By default `tool_calls` if there are calls, else `stop`. */
  readonly finishReason?: string;
  /** By default a token per delta. */
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
  /** The connection breaks off after so many pieces. A whole answer (not streamed) breaks off before its end. */
  readonly cutAfter?: number;
  /** Falls silent: `"before"` the status line, or after all pieces. Ends when the client leaves or the server is closed. */
  readonly hang?: boolean | "before";
  /** Milliseconds to wait before each piece. */
  readonly delayMs?: number;
}

/** A tool that the model asks for. */
export interface FakeToolCall {
  readonly name: string;
  /** The arguments. A string is sent as it is, which is how a model's broken JSON is played. */
  readonly input: unknown;
  /** A new one by default. */
  readonly id?: string;
}

/** An answer with an HTTP error. */
export interface FakeError {
  readonly status: number;
  /** By default what OpenAI says in such a case, more or less. */
  readonly message?: string;
  readonly code?: string;
  /** The `retry-after` header. */
  readonly retryAfterSeconds?: number;
}

/** Where an answer goes to: a response of a Node server. */
interface Outlet {
  readonly destroyed: boolean;
  writeHead(status: number, headers: Record<string, string>): unknown;
  write(text: string): unknown;
  end(text?: string): unknown;
  once(event: "close", listener: () => void): unknown;
}

const MESSAGES: Readonly<Record<number, string>> = {
  401: "Incorrect API key provided.",
  404: "The model does not exist or you do not have access to it.",
  429: "Rate limit reached for requests.",
  500: "The server had an error while processing your request.",
};

/** Sends an error in OpenAI's form. */
export function sendError(to: Outlet, { status, message, code, retryAfterSeconds }: FakeError): void {
  const text = message ?? MESSAGES[status] ?? `The request failed with status ${status}.`;
  to.writeHead(status, {
    "content-type": "application/json",
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
  });
  to.end(JSON.stringify({ error: { message: text, type: "error", param: null, code: code ?? null } }));
}

/** Plays a reply. Resolves with `cut` when the connection has to be broken off now. */
export async function playReply(
  reply: FakeReply,
  to: Outlet,
  request: { readonly stream?: boolean; readonly model?: string },
): Promise<"ended" | "cut"> {
  if (reply.hang === "before") return untilClosed(to);
  return request.stream === true ? playStream(reply, to, request.model) : playWhole(reply, to, request.model);
}

async function playStream(reply: FakeReply, to: Outlet, model: string | undefined): Promise<"ended" | "cut"> {
  to.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const head = { id: newId("chatcmpl"), object: "chat.completion.chunk", created: 0, model: model ?? "fake" };
  const pieces = [
    ...deltasOf(reply).map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: finishReasonOf(reply) }] },
    { choices: [], usage: usageOf(reply) },
  ];
  for (const piece of pieces.slice(0, reply.cutAfter)) {
    if (reply.delayMs !== undefined) await pause(reply.delayMs);
    if (to.destroyed) return "ended";
    to.write(`data: ${JSON.stringify({ ...head, ...piece })}\n\n`);
  }
  if (reply.cutAfter !== undefined) return cut();
  if (reply.hang === true) return untilClosed(to);
  to.end("data: [DONE]\n\n");
  return "ended";
}

async function playWhole(reply: FakeReply, to: Outlet, model: string | undefined): Promise<"ended" | "cut"> {
  if (reply.delayMs !== undefined) await pause(reply.delayMs);
  to.writeHead(200, { "content-type": "application/json" });
  const calls = toolCallsOf(reply);
  const message = {
    role: "assistant",
    content: reply.text === undefined ? null : list(reply.text).join(""),
    ...(reply.reasoning !== undefined && { reasoning_content: list(reply.reasoning).join("") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const json = JSON.stringify({
    id: newId("chatcmpl"),
    object: "chat.completion",
    created: 0,
    model: model ?? "fake",
    choices: [{ index: 0, message, finish_reason: finishReasonOf(reply) }],
    usage: usageOf(reply),
  });
  if (reply.cutAfter !== undefined || reply.hang === true) {
    to.write(json.slice(0, json.length / 2));
    return reply.hang === true ? untilClosed(to) : cut();
  }
  to.end(json);
  return "ended";
}

function deltasOf(reply: FakeReply): object[] {
  return [
    { role: "assistant", content: "" },
    ...list(reply.reasoning ?? []).map((text) => ({ reasoning_content: text })),
    ...list(reply.text ?? []).map((text) => ({ content: text })),
    ...toolCallsOf(reply).flatMap(({ id, function: { name, arguments: input } }, index) => {
      const half = Math.ceil(input.length / 2);
      return [
        { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
        { tool_calls: [{ index, function: { arguments: input.slice(0, half) } }] },
        { tool_calls: [{ index, function: { arguments: input.slice(half) } }] },
      ];
    }),
  ];
}

function toolCallsOf({ toolCalls = [] }: FakeReply) {
  return toolCalls.map(({ name, input, id }) => ({
    id: id ?? newId("call"),
    type: "function",
    function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input) },
  }));
}

function finishReasonOf({ finishReason, toolCalls = [] }: FakeReply): string {
  return finishReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop");
}

function usageOf({ usage = {}, text = [], reasoning = [] }: FakeReply) {
  const input = usage.inputTokens ?? 1;
  const output = usage.outputTokens ?? list(text).length + list(reasoning).length;
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function list(text: string | readonly string[]): readonly string[] {
  return typeof text === "string" ? [text] : text;
}

/** What was written has to be on its way first, or the client would see less than the script says. */
const BEFORE_CUT_MS = 20;

async function cut(): Promise<"cut"> {
  await pause(BEFORE_CUT_MS);
  return "cut";
}

function untilClosed(to: Outlet): Promise<"ended"> {
  return new Promise((resolve) => (to.destroyed ? resolve("ended") : to.once("close", () => resolve("ended"))));
}
