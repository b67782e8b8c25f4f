import { PerdureError } from "../error.ts";
import { newId } from "../id.ts";
import type { Identity } from "../identity.ts";
import { STREAM_HEADERS, streamTurn } from "../live/sse.ts";
import type { LiveChat } from "../live/live-chat.ts";
import type { AgentHost } from "../port.ts";
import { userText } from "../message/input.ts";
import { isRecord } from "../message/json.ts";
import { readTurn, type TurnRow } from "../store/turn.ts";
import type { Chat } from "../turn/chat.ts";
import { judgeAnswer } from "../turn/judge-answer.ts";
import { notStored, notTaken } from "../turn/not-taken.ts";
import { checkMessages, turnThatAnswers } from "../turn/submit.ts";
import type { ToolAnswer } from "../turn/tool-answers.ts";
import { parseChatBody } from "../wire/chat-body.ts";
import { MAX_ID_LENGTH } from "../wire/parse.ts";
import { answerInboxRequest } from "./chat-inbox-http.ts";
import { decodeSegment, readBody, refuseInput } from "./request-body.ts";

/*
 * The chat over plain HTTP, for clients without WebSocket, under the agent's own address:
 *
 *   GET    …/get-messages             the conversation
 *   GET    …/chat                     what runs and what waits
 *   POST   …/chat                     a turn; its stream with `accept: text/event-stream` or for the AI SDK's own
 *                                     transport, else 202 and its id
 *   GET    …/chat/{id}/stream         the stream from `?after=N` or `Last-Event-ID` on; 204 when there is none
 *   POST   …/chat/{id}/cancel         stop
 *   POST   …/chat/tools/{toolCallId}  { output } | { errorText } | { approved, reason? }
 *   DELETE …/chat                     forget the conversation
 *   …/chat/inbox                      what waits: `chat-inbox-http.ts`
 *
 * The body of a turn is what the AI SDK's own transport sends, so that `useChat({ api: ".../chat" })` works.
 */

/** What a path behind the agent's address asks for: the method and the route, and the id in it. */
const ROUTE = /(?:^|\/)chat(?:\/tools\/(?<call>[^/]+)|\/(?<turn>[^/]+)\/(?<what>stream|cancel))?\/?$/;

/** The number before that of the first chunk. */
const FROM_THE_START = -1;

/**
 * Answers a request that is about the chat; undefined for any other.
 * @param rest the path behind the agent's address.
 * @param identity who sent it, as the app established it.
 */
export async function answerChatRequest(
  room: () => { readonly chat: Chat; readonly live: LiveChat },
  request: Request,
  rest: string,
  identity?: Identity,
): Promise<Response | undefined> {
  const groups = ROUTE.exec(rest)?.groups;
  if (groups === undefined) return answerInboxRequest(room, request, rest, identity);
  const { call, turn, what } = groups;
  const { chat, live } = room();
  try {
    switch (`${request.method} ${call === undefined ? (what ?? "chat") : "tools"}`) {
      case "GET chat":
        return Response.json(describe(chat));
      case "POST chat":
        return await post(chat, live, request, identity);
      case "DELETE chat":
        chat.clear(undefined);
        return Response.json({ cleared: true });
      case "GET stream":
        return follow(chat, live, request, decodeSegment(turn ?? ""));
      case "POST cancel":
        return Response.json({ cancelled: chat.cancel(decodeSegment(turn ?? "")) });
      case "POST tools": {
        const given = await readAnswer(chat.host, request, decodeSegment(call ?? ""));
        const [answer] = await judgeAnswers(chat, [{ ...given, identity }]);
        return Response.json({ changed: answer !== undefined && chat.answerTool(answer, undefined) });
      }
      default:
        return new Response("Method Not Allowed", { status: 405 });
    }
  } catch (thrown) {
    return refuseInput(thrown);
  }
}

function describe(chat: Chat) {
  const waiting = chat.waitingTurns().map((turn) => turn.id);
  return { running: chat.running?.row.id ?? null, waiting: waiting.filter((id) => id !== chat.running?.row.id) };
}

async function post(chat: Chat, live: LiveChat, request: Request, identity: Identity | undefined): Promise<Response> {
  const value = await readBody(chat.host, request);
  if (!isRecord(value)) throw new PerdureError("bad_input", "The body must be a JSON object with `messages`.");
  // `id` is the AI SDK's name of the chat, not of this request; the others belong to its transport.
  const { id: _chat, messageId: _message, requestId, message, ...rest } = value;
  const said: unknown = typeof message === "string" && message !== "" ? userText(message) : message;
  const body = parseChatBody(said === undefined ? rest : { ...rest, messages: [said] }, MAX_ID_LENGTH);
  if ("reason" in body) throw new PerdureError(body.code ?? "bad_input", body.reason);
  const id = requestIdOf(request.headers.get("idempotency-key") ?? requestId);
  const trigger = body.trigger === "regenerate-message" ? "regenerate" : "submit";
  const known = readTurn(chat.host, id);
  if (known === undefined) {
    try {
      checkMessages(chat, body.messages);
    } catch (thrown) {
      if (!PerdureError.is(thrown)) throw thrown;
      throw new PerdureError(thrown.code, await notTaken(chat, { id, identity }, thrown, "parse"));
    }
    for (const answer of await judgeAnswers(chat, answersIn(body.messages.at(-1), identity)))
      chat.answerTool(answer, undefined);
    try {
      chat.submit({ ...body, id, trigger, identity }, undefined);
    } catch (thrown) {
      if (!chat.knows(id)) await notTaken(chat, { id, identity }, notStored(thrown), "persist");
      throw thrown;
    }
  }
  const turn = turnFor(chat, id);
  if (turn === undefined) return Response.json({ id, status: "skipped" }, { status: 409 });
  if (wantsStream(request, value)) return streamTurn(chat.host, live, turn, 0);
  return Response.json({ id: turn.id, status: turn.status }, { status: 202 });
}

/** The AI SDK's transport always reads a stream, and does not say so: it is known by the field that it always sends. */
function wantsStream(request: Request, body: Record<string, unknown>): boolean {
  const accept = request.headers.get("accept") ?? "";
  if (accept.includes("text/event-stream")) return true;
  return typeof body.trigger === "string" && !accept.includes("application/json");
}

/** The AI SDK's transport has no other way to answer tool calls than in the message that it sends back. */
function answersIn(last: unknown, identity: Identity | undefined): ToolAnswer[] {
  if (!isRecord(last) || last.role !== "assistant" || !Array.isArray(last.parts)) return [];
  return (last.parts as unknown[]).flatMap((part) => {
    if (!isRecord(part) || typeof part.toolCallId !== "string") return [];
    const answer = toAnswer(part);
    return answer === undefined ? [] : { toolCallId: part.toolCallId, answer, autoContinue: false, identity };
  });
}

/** The answers as they may be given. @throws PerdureError `not_allowed` when one may not: then none is given. */
async function judgeAnswers(chat: Chat, answers: readonly ToolAnswer[]): Promise<ToolAnswer[]> {
  const allowed: ToolAnswer[] = [];
  for (const given of answers) {
    const judged = await judgeAnswer(chat, { ...given, overHttp: true });
    if ("refusal" in judged) throw new PerdureError("not_allowed", judged.refusal.reason);
    allowed.push(judged.answer);
  }
  return allowed;
}

/** What a tool part of a client says that the client may say. */
function toAnswer(part: Record<string, unknown>): ToolAnswer["answer"] | undefined {
  if (part.state === "output-available")
    return { kind: "result", result: { state: "output-available", output: part.output } };
  if (part.state === "output-error") {
    const errorText = typeof part.errorText === "string" ? part.errorText : undefined;
    return { kind: "result", result: { state: "output-error", errorText } };
  }
  const { approval } = part;
  if (!isRecord(approval) || typeof approval.approved !== "boolean") return undefined;
  const reason = typeof approval.reason === "string" ? approval.reason : undefined;
  return { kind: "approval", approved: approval.approved, reason };
}

function follow(chat: Chat, live: LiveChat, request: Request, id: string): Response {
  const url = new URL(request.url);
  const turn = turnFor(chat, id) ?? current(chat);
  if (turn === undefined) return new Response(null, { status: 204, headers: STREAM_HEADERS });
  const last = url.searchParams.get("after") ?? request.headers.get("last-event-id");
  const after = last === null ? FROM_THE_START : last.trim() === "" ? Number.NaN : Number(last);
  if (!Number.isInteger(after) || after < FROM_THE_START)
    throw new PerdureError("bad_input", "`after` must be the number of the last chunk that was seen.");
  return streamTurn(chat.host, live, turn, after + 1);
}

/** The turn of a request; of one that asked the same as a turn under way, that one: its answer is the answer. */
function turnFor(chat: Chat, id: string): TurnRow | undefined {
  const own = readTurn(chat.host, id);
  const asked = own?.status === "skipped" ? (JSON.parse(own.messageIds) as string[]).at(-1) : undefined;
  const joined = own && asked !== undefined ? turnThatAnswers(chat, own.session, asked) : undefined;
  return joined ?? own;
}

function current(chat: Chat): TurnRow | undefined {
  return chat.running?.row ?? chat.waitingTurns()[0];
}

async function readAnswer(host: AgentHost, request: Request, toolCallId: string): Promise<ToolAnswer> {
  const value = await readBody(host, request);
  if (!isRecord(value)) throw new PerdureError("bad_input", "The body must be a JSON object.");
  const autoContinue = value.autoContinue !== false;
  if (typeof value.approved === "boolean") {
    const reason = typeof value.reason === "string" ? value.reason : undefined;
    return { toolCallId, answer: { kind: "approval", approved: value.approved, reason }, autoContinue };
  }
  if (typeof value.errorText === "string") {
    return {
      toolCallId,
      answer: { kind: "result", result: { state: "output-error", errorText: value.errorText } },
      autoContinue,
    };
  }
  if (!("output" in value))
    throw new PerdureError("bad_input", "Answer a tool call with `output`, `errorText` or `approved`.");
  return {
    toolCallId,
    answer: { kind: "result", result: { state: "output-available", output: value.output } },
    autoContinue,
  };
}

function requestIdOf(value: unknown): string {
  if (value === undefined || value === null) return newId("http");
  if (typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH) return value;
  throw new PerdureError("bad_input", `A request id must be text of at most ${MAX_ID_LENGTH} characters.`);
}
