import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { STREAM_HEADERS, streamTurn } from "../sse.ts";
import type { Broadcast } from "../broadcast.ts";
import { userText } from "../../message/input.ts";
import { isRecord } from "../../base/json.ts";
import { countChunks } from "../../store/stream.ts";
import { isOpen, readTurn, type TurnRow, messageIdsOf } from "../../store/turn.ts";
import type { Conversations } from "../../turn/engine/conversations.ts";
import { isOfSession } from "../../turn/engine/mend.ts";
import { judgeAnswer } from "../../turn/intake/judge-answer.ts";
import { checkMessages, notStored, notTaken, submit, turnThatAnswers } from "../../turn/intake/submit.ts";
import { answerTool, type ToolAnswer } from "../../turn/intake/tool-answers.ts";
import { parseChatBody } from "../../wire/chat-body.ts";
import { sessionIn } from "../../wire/history.ts";
import { MAX_ID_LENGTH } from "../../wire/id.ts";
import type { Ask, RequestCaller } from "../../door/authorize.ts";
import type { Route, RouteRequest } from "../../door/routes.ts";

/*
 * The chat over plain HTTP, for clients without WebSocket, under the agent's own address. All of it is about one session:
 * the one that `?_session=` names, or whichever is the current one; of others there is nothing here, as if it were not.
 *
 *   GET    …/get-messages             the conversation: `messages.ts`
 *   GET    …/chat                     what runs and what waits
 *   POST   …/chat                     a turn; its stream with `accept: text/event-stream` or for the AI SDK's own
 *                                     transport, else 202 and its id
 *   GET    …/chat/{turn}/stream       the stream from `?after=N` or `Last-Event-ID` on; 204 when there is none
 *   POST   …/chat/{turn}/cancel       stop
 *   POST   …/chat/tools/{call}        { output } | { errorText } | { approved, reason? }
 *   DELETE …/chat                     forget the conversation
 *   …/chat/inbox                      what waits: `inbox.ts`
 *
 * The body of a turn is what the AI SDK's own transport sends, so that `useChat({ api: ".../chat" })` works.
 */

/** The number before that of the first chunk. */
const FROM_THE_START = -1;

/** What the routes of a chat open. */
export interface ChatDoor {
  readonly room: { readonly chat: Conversations; readonly live: Broadcast };
}

/** The routes of the chat itself. */
export const TURN_ROUTES: readonly Route<ChatDoor>[] = [
  {
    method: "POST",
    shape: "chat/tools/{call}",
    acts: ["tool.answer", "tool.approve"],
    async ask({ params, body }) {
      const { toolCallId, answer } = readAnswer(await body(), params.call ?? "");
      return askToAnswer(toolCallId, answer);
    },
    async answer({ params, body, caller, insist }, { room: { chat } }) {
      const given = readAnswer(await body(), params.call ?? "");
      const where = { identity: caller.identity, session: sessionFor(chat, caller) };
      const [answer] = await judgeAnswers(chat, [{ ...given, ...where }], insist);
      const changed = answer === undefined ? false : answerTool(chat, answer, undefined);
      return Response.json({ changed: changed === true, ...(changed === "held" && { held: true }) });
    },
  },
  {
    method: "GET",
    shape: "chat/{turn}/stream",
    acts: ["chat.follow"],
    ask: ({ params }) => ({ act: "chat.follow", on: { requestId: params.turn } }),
    answer: follow,
  },
  {
    method: "POST",
    shape: "chat/{turn}/cancel",
    acts: ["chat.cancel"],
    ask: ({ params }) => ({ act: "chat.cancel", on: { requestId: params.turn } }),
    answer: ({ params, caller }, { room: { chat } }) =>
      Response.json({ cancelled: chat.cancel(params.turn ?? "", sessionFor(chat, caller)) }),
  },
  {
    method: "GET",
    shape: "chat",
    acts: ["chat.read"],
    answer: ({ caller }, { room: { chat } }) => Response.json(describe(chat, sessionFor(chat, caller))),
  },
  { method: "POST", shape: "chat", acts: ["chat.submit", "tool.answer", "tool.approve"], answer: post },
  {
    method: "DELETE",
    shape: "chat",
    acts: ["chat.clear"],
    answer({ caller }, { room: { chat } }) {
      chat.clear(undefined, sessionFor(chat, caller));
      return Response.json({ cleared: true });
    },
  },
];

const sessions = new WeakMap<RequestCaller, string>();

/** The session of a request, which its sender may enter. Fixed from then on, whichever is current when the body has come. */
export function sessionFor(chat: Conversations, caller: RequestCaller): string {
  let session = sessions.get(caller);
  if (session === undefined) sessions.set(caller, (session = sessionIn(caller.uri) ?? chat.transcripts.current));
  return session;
}

function describe(chat: Conversations, session: string) {
  const running = chat.turnIn(session)?.row.id ?? null;
  const waiting = chat.waitingTurns(session).map((turn) => turn.id);
  return { running, waiting: waiting.filter((id) => id !== running) };
}

async function post({ request, caller, body: read, insist }: RouteRequest, { room }: ChatDoor): Promise<Response> {
  const { chat, live } = room;
  const { identity } = caller;
  const session = sessionFor(chat, caller);
  const value = await read();
  if (!isRecord(value)) throw new PerdureError("bad_input", "The body must be a JSON object with `messages`.");
  // `id` is the AI SDK's name of the chat, not of this request; the others belong to its transport.
  const { id: _chat, messageId: _message, requestId, message, ...rest } = value;
  const said: unknown = typeof message === "string" && message !== "" ? userText(message) : message;
  const body = parseChatBody(said === undefined ? rest : { ...rest, messages: [said] });
  if ("reason" in body) throw new PerdureError(body.code ?? "bad_input", body.reason);
  const id = requestIdOf(request.headers.get("idempotency-key") ?? requestId);
  const trigger = body.trigger === "regenerate-message" ? "regenerate" : "submit";
  const known = readTurn(chat.host, id);
  if (known !== undefined && !isOfSession(chat.host, known, session))
    throw new PerdureError("conflict", `The request id "${id}" is already in use. Use a new one.`);
  if (known === undefined) {
    try {
      checkMessages(chat, session, body.messages);
    } catch (thrown) {
      if (!PerdureError.is(thrown)) throw thrown;
      throw new PerdureError(thrown.code, await notTaken(chat, { id, identity }, thrown, "parse"));
    }
    const answers = answersIn(body.messages.at(-1)).map((answer) => ({ ...answer, identity, session }));
    for (const { toolCallId, answer } of answers) await insist(askToAnswer(toolCallId, answer));
    for (const answer of await judgeAnswers(chat, answers, insist, true)) answerTool(chat, answer, undefined);
    try {
      submit(chat, { ...body, id, trigger, identity, session }, undefined);
    } catch (thrown) {
      if (!chat.knows(id)) await notTaken(chat, { id, identity }, notStored(thrown), "persist");
      throw thrown;
    }
  }
  const turn = turnFor(chat, session, id);
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
function answersIn(last: unknown): ToolAnswer[] {
  if (!isRecord(last) || last.role !== "assistant" || !Array.isArray(last.parts)) return [];
  return (last.parts as unknown[]).flatMap((part) => {
    if (!isRecord(part) || typeof part.toolCallId !== "string") return [];
    const answer = toAnswer(part);
    if (answer === undefined) return [];
    const approvalId = answer.kind === "approval" && isRecord(part.approval) ? textOf(part.approval.id) : undefined;
    const about = { messageId: textOf(last.id), approvalId };
    return { toolCallId: part.toolCallId, answer, about, autoContinue: false };
  });
}

function askToAnswer(toolCallId: string, answer: ToolAnswer["answer"]): Ask {
  return { act: answer.kind === "approval" ? "tool.approve" : "tool.answer", on: { toolCallId } };
}

/**
 * The answers as they may be given. `all`: they are all that a page has, so those about nothing open are passed over. @throws
 * PerdureError `not_allowed`, `conflict`: then none is given.
 */
async function judgeAnswers(
  chat: Conversations,
  answers: readonly ToolAnswer[],
  insist: RouteRequest["insist"],
  all = false,
): Promise<ToolAnswer[]> {
  const allowed: ToolAnswer[] = [];
  let slow = false;
  for (const given of answers) {
    const judging = judgeAnswer(chat, { ...given, overHttp: true });
    slow ||= judging instanceof Promise;
    const judged = await judging;
    if ("answer" in judged) allowed.push(judged.answer);
    else if (!all || judged.refusal.code !== "conflict")
      throw new PerdureError(judged.refusal.code, judged.refusal.reason);
  }
  // Whoever was asked took a while: what was allowed before counts only if it still is.
  if (slow) for (const { toolCallId, answer } of allowed) await insist(askToAnswer(toolCallId, answer));
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

function follow({ request, caller, params, query }: RouteRequest, { room }: ChatDoor): Response {
  const { chat, live } = room;
  const session = sessionFor(chat, caller);
  const turn = turnFor(chat, session, params.turn ?? "") ?? current(chat, session);
  if (turn === undefined) return new Response(null, { status: 204, headers: STREAM_HEADERS });
  const last = query.get("after") ?? request.headers.get("last-event-id");
  const after = last === null ? FROM_THE_START : last.trim() === "" ? Number.NaN : Number(last);
  if (!Number.isInteger(after) || after < FROM_THE_START)
    throw new PerdureError("bad_input", "`after` must be the number of the last chunk that was seen.");
  // What was shown and not yet synced is gone after a loss of power, and its numbers are used again.
  if (isOpen(turn) && after >= countChunks(chat.host, turn.seq) && after !== FROM_THE_START)
    throw new PerdureError(
      "conflict",
      `There is no chunk ${after}: the server lost the last chunks that were seen. Read the stream from its start.`,
    );
  return streamTurn(chat.host, live, turn, after + 1);
}

/** The turn of a request; of one that asked the same as a turn under way, that one: its answer is the answer. */
function turnFor(chat: Conversations, session: string, id: string): TurnRow | undefined {
  const found = readTurn(chat.host, id);
  const own = found !== undefined && isOfSession(chat.host, found, session) ? found : undefined;
  const asked = own?.status === "skipped" ? messageIdsOf(own).at(-1) : undefined;
  const joined = own && asked !== undefined ? turnThatAnswers(chat, own.session, asked) : undefined;
  return joined ?? own;
}

function current(chat: Conversations, session: string): TurnRow | undefined {
  const running = chat.turnIn(session)?.row;
  return running ?? chat.waitingTurns(session)[0];
}

function readAnswer(value: unknown, toolCallId: string): ToolAnswer {
  if (!isRecord(value)) throw new PerdureError("bad_input", "The body must be a JSON object.");
  const autoContinue = value.autoContinue !== false;
  if (typeof value.approved === "boolean") {
    const { approved } = value;
    const about = { approvalId: namedIn(value, "approvalId") };
    const digest = namedIn(value, "digest");
    return {
      toolCallId,
      answer: { kind: "approval", approved, reason: textOf(value.reason) },
      about,
      digest,
      autoContinue,
    };
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

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A field that names something, if it is there. @throws PerdureError `bad_input` */
function namedIn(body: Record<string, unknown>, field: string): string | undefined {
  const value = body[field] ?? undefined;
  if (value === undefined || (typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH)) return value;
  throw new PerdureError("bad_input", `\`${field}\` must be text of at most ${MAX_ID_LENGTH} characters.`);
}

function requestIdOf(value: unknown): string {
  if (value === undefined || value === null) return newId("http");
  if (typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH) return value;
  throw new PerdureError("bad_input", `A request id must be text of at most ${MAX_ID_LENGTH} characters.`);
}
