import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isRecord } from "../base/json.ts";
import { type FakeError, type FakeReply, playReply, sendError } from "./fake-openai-reply.ts";

/** A request that came to a {@link fakeOpenAI}, for assertions. */
export interface FakeOpenAIRequest {
  readonly path: string;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: FakeOpenAIBody;
  /** Whether the client left before the answer was at its end. */
  readonly aborted: boolean;
}

/** The body of a chat request, as far as it was given. */
export interface FakeOpenAIBody {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly {
    readonly role: string;
    readonly content?: unknown;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly unknown[];
  }[];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[];
  readonly [field: string]: unknown;
}

/** The replies in order, or a function of the request, which may be slow and must not throw. */
export type FakeOpenAIScript =
  | readonly FakeAnswer[]
  | ((request: FakeOpenAIRequest, index: number) => FakeAnswer | Promise<FakeAnswer>);

/** What one request is answered with. A string is a text in one delta. */
export type FakeAnswer = string | FakeReply | FakeError;

/** A model server that plays a script. */
export interface FakeOpenAI {
  /** The base URL for a provider: `http://127.0.0.1:…/v1`. */
  readonly url: string;
  readonly port: number;
  /** All requests so far, oldest first. */
  readonly requests: readonly FakeOpenAIRequest[];
  /** Puts more replies behind those that are there. Only for a script that is a list. */
  add(...replies: readonly FakeAnswer[]): void;
  /** Ends all connections and frees the port. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a local server that speaks OpenAI's chat API and plays a script, so that a provider's real code can be tested without a
 * network: streamed and whole answers, tool calls, usage, HTTP errors, broken connections, and silence. A request beyond the end
 * of the list is answered with an error that says so.
 *
 * ```ts
 * await using server = await fakeOpenAI(["Hello!", { status: 429, retryAfterSeconds: 1 }]);
 * const provider = createOpenAICompatible({ name: "fake", baseURL: server.url });
 * ```
 */
export async function fakeOpenAI(script: FakeOpenAIScript = []): Promise<FakeOpenAI> {
  const list: FakeAnswer[] = typeof script === "function" ? [] : [...script];
  const requests: FakeOpenAIRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    // A client that leaves while it is read or answered is part of the play.
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const path = new URL(incoming.url ?? "/", "http://localhost").pathname;
    const body = await readBody(incoming);
    if (path !== "/v1/chat/completions" || incoming.method !== "POST") {
      return sendError(outgoing, { status: 404, message: `There is no ${incoming.method} ${path} here.` });
    }
    if (body === undefined) return sendError(outgoing, { status: 400, message: "The body is not a JSON object." });
    const request = { path, headers: headersOf(incoming), body, aborted: false };
    const index = requests.push(request) - 1;
    let over = false;
    outgoing.on("close", () => (request.aborted = !over));
    const next = typeof script === "function" ? await script(request, index) : list[index];
    const reply = typeof next === "string" ? { text: next } : (next ?? beyondTheEnd(list.length, index));
    const end = "status" in reply ? sendError(outgoing, reply) : await playReply(reply, outgoing, body);
    over = true;
    if (end === "cut") outgoing.destroy();
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> => closeServer(server);
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    add: (...replies) => void list.push(...replies),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function beyondTheEnd(length: number, index: number): FakeError {
  // Not a status that clients try again.
  return { status: 400, message: `The script has ${length} replies and this is request ${index + 1}: add a reply.` };
}

async function readBody(incoming: IncomingMessage): Promise<FakeOpenAIBody | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
