import type { ModelMessage } from "@tanstack/ai";
import type { Context } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { AgentMessage, SummaryRecord } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import { watchQuery, type RowQuery } from "../log/query.ts";
import { indexRows, type RowIndex } from "../log/row-index.ts";
import type { RowChange, RowCondition } from "../../wire/row-frames.ts";
import { rowsOf, type RowCollection, type RowOptions, type Rows } from "../log/rows.ts";
import type { AgentContext, AgentReply, AgentTurnStatus, CollectionAgentConfig, MessageCollection } from "./config.ts";
import type { Mailbox, Turn } from "./mailbox.ts";
import { DEFAULT_WINDOW, contextOf, isWaiting } from "./history.ts";
import { byPlace, createdNow } from "./message.ts";

type MessageTurn = Turn<AgentMessage>;

/** How often a step starts again because somebody has changed one of its messages in between. */
const STEP_TRIES = 20;

/** The most messages that are answered together, and how long they may be in all: they are written together too. */
const TURN_MESSAGES = 400;
const TURN_CHARACTERS = 1_000_000;

/** After how many answers those that are over are forgotten. */
const KNOWN_GENERATIONS = 1_000;

type MailboxConfig = Pick<
  CollectionAgentConfig,
  "name" | "collections" | "pendingWork" | "buildMessages" | "onResponse" | "onError" | "hooks"
>;

/** An agent on a collection of messages. */
export class CollectionMailbox implements Mailbox<AgentMessage> {
  readonly ready: Promise<void>;
  readonly #config: MailboxConfig;
  readonly #rows: Rows<AgentMessage>;
  readonly #inbox: Inbox;
  readonly #unsubscribe: (() => void) | undefined;
  readonly #table: string | undefined;
  readonly #admit: (row: object, before?: object) => { readonly [field: string]: unknown };
  /** Collections without a log: what this process has begun. */
  readonly #begun = new Map<string, { generationId: string; attempts: number }>();
  /** The answers that this runner may carry on; undefined: all. */
  readonly #known: Set<string> | undefined;

  /** `adopts`: which answers begun by others to carry on. `at-start`: not later ones, whose runner may well be alive. */
  constructor(config: MailboxConfig, adopts: "all" | "at-start", wake: () => void) {
    this.#config = config;
    this.#known = adopts === "all" ? undefined : new Set();
    const { messages } = config.collections;
    this.#rows = rowsOf(messages);
    const utils = logUtilsOf(messages);
    this.#table = utils?.tableName;
    this.#admit = utils?.admit ?? ((row) => ({ ...row }));
    this.#inbox = openInbox(config.name, messages, config.pendingWork, wake);
    this.#unsubscribe = config.hooks?.subscribe?.(wake);
    this.ready = Promise.all([this.#inbox.ready, config.hooks?.ready?.()]).then(() => {
      for (const row of this.#inbox.read()) if (row.generationId !== undefined) this.#known?.add(row.generationId);
      wake();
    });
  }

  pending(): AgentMessage[] {
    return this.#inbox
      .read()
      .map((row) => this.#withBegun(row))
      .filter((row) => !this.#isSettled(row) && !this.#isForeign(row) && !this.#sleeps(row));
  }

  /** By the row as it was confirmed: a query may be behind, or go on listing what was answered. */
  #isSettled(row: AgentMessage): boolean {
    return this.#rows.get(row.id)?.processed === true;
  }

  idOf(row: AgentMessage): string {
    return row.id;
  }

  attemptsOf(row: AgentMessage): number {
    return row.attempts ?? 0;
  }

  /**
   * People's messages are answered together, each agent's request alone: it wants its own reply. What was begun together is
   * retried together, except for the last try, so that one unanswerable message does not sink the others.
   */
  batch(due: readonly AgentMessage[], maxAttempts: number): AgentMessage[] {
    const [first] = due;
    if (first === undefined) return [];
    if (first.generationId !== undefined) {
      const same = due.filter((row) => row.generationId === first.generationId);
      return this.attemptsOf(first) > 0 && this.attemptsOf(first) + 1 >= maxAttempts ? [first] : same;
    }
    if (first.requestId !== undefined) return [first];
    return oneWrite(due.filter((row) => row.generationId === undefined && row.requestId === undefined));
  }

  async begin(rows: readonly AgentMessage[], fence: RowOptions): Promise<MessageTurn | undefined> {
    const together = new Set(rows.map((row) => row.generationId));
    const [known] = together;
    const alone =
      known !== undefined && this.#inbox.read().some((row) => row.generationId === known && !has(rows, row));
    // An answer that has its reply is over: who asks for a message again wants another one.
    const isOver = known !== undefined && this.#rows.get(replyRowId(known)) !== undefined;
    const generationId = together.size === 1 && known !== undefined && !alone && !isOver ? known : newId("gen");
    const attempt = Math.max(...rows.map((row) => this.attemptsOf(row))) + 1;
    const callers = rows.length === 1 ? (rows[0]?.callers ?? []) : [];
    const current = rows.flatMap((row) => this.#rows.get(row.id) ?? []);
    const taken = current.map((row) => ({ ...row, generationId, attempts: attempt }));
    const turn: MessageTurn = { rows: taken, generationId, attempt, callers };
    this.#know(generationId);
    if (this.#table === undefined) {
      for (const row of rows) this.#begun.set(row.id, { generationId, attempts: attempt });
      return turn;
    }
    const same = current.every((row, index) => !row.processed && row.generationId === rows[index]?.generationId);
    if (current.length !== rows.length || !same) return undefined;
    // Of two runners that take the same message one gets it.
    const when = [...(fence.when ?? []), ...rows.map((row) => this.#unchanged(row.id))];
    const changes = [...taken.map((row) => this.#update(row)), ...this.#changes(turn, "generating", fence)];
    return (await this.#write(changes, { ...fence, when })) ? turn : undefined;
  }

  lost(turn: MessageTurn): Error | undefined {
    if (this.#config.hooks?.isCancelled?.(turn.generationId) === true) {
      return new PerdureError("cancelled", `The answer "${turn.generationId}" was cancelled.`);
    }
    const rows = turn.rows.map((row) => this.#rows.get(row.id));
    if (rows.every((row) => row === undefined)) {
      return new PerdureError("cancelled", "The messages that were to be answered were deleted.");
    }
    if (this.#table === undefined) return undefined;
    if (rows.some((row) => row !== undefined && (row.processed || row.generationId !== turn.generationId))) {
      return new PerdureError("fenced", `Another runner of "${this.#config.name}" has taken over the answer.`);
    }
    return undefined;
  }

  async build(turn: MessageTurn, context: AgentContext) {
    const { buildMessages, name, collections } = this.#config;
    if (buildMessages !== undefined) return buildMessages(turn.rows, { ...context, collections });
    const { summaries } = collections as { summaries?: RowCollection<SummaryRecord> };
    const kept = summaries === undefined ? [] : rowsOf(summaries).all();
    return contextOf(name, this.#rows.all(), kept, { windowSize: DEFAULT_WINDOW, pending: turn.rows });
  }

  async store(turn: MessageTurn, reply: AgentReply, context: AgentContext): Promise<boolean> {
    const { onResponse, collections } = this.#config;
    if (onResponse !== undefined) await onResponse(reply.content, turn.rows, { ...context, collections });
    const added = onResponse === undefined ? replyRows(this.#config.name, turn, reply) : [];
    const stored = await this.#close(turn, (row) => ({ ...row, processed: true }), added, "completed", context.fence);
    return stored;
  }

  async handBack(turn: MessageTurn, why: "suspended" | "disposed", fence: RowOptions): Promise<void> {
    const status = why === "suspended" ? "suspended" : "pending";
    if (this.#table === undefined) {
      for (const row of turn.rows)
        this.#begun.set(row.id, { generationId: turn.generationId, attempts: turn.attempt - 1 });
      return;
    }
    await this.#close(turn, (row) => ({ ...row, attempts: turn.attempt - 1 }), [], status, fence);
  }

  async failed(turn: MessageTurn, error: Error, fence: RowOptions): Promise<void> {
    const changes = this.#changes(turn, "pending", fence, error);
    if (changes.length > 0) await this.#write(changes, fence);
  }

  async giveUp(turn: MessageTurn, error: Error, context: AgentContext): Promise<void> {
    const status = PerdureError.is(error, "cancelled") ? "cancelled" : "failed";
    try {
      const { collections } = this.#config;
      if (status === "failed") await this.#config.onError?.(error, turn.rows, { ...context, collections });
    } finally {
      const mark = (row: AgentMessage): AgentMessage => ({ ...row, processed: true, error: error.message });
      await this.#close(turn, mark, [], status, context.fence, error);
      for (const row of turn.rows) this.#begun.delete(row.id);
    }
  }

  async dispose(): Promise<void> {
    this.#unsubscribe?.();
    await this.#inbox.dispose();
  }

  /** Ends a try in one write, if the messages are still this turn's. Keeps edits made meanwhile. */
  async #close(
    turn: MessageTurn,
    mark: (row: AgentMessage) => AgentMessage,
    added: readonly AgentMessage[],
    status: AgentTurnStatus,
    fence: RowOptions,
    error?: Error,
  ): Promise<boolean> {
    for (let tries = 0; tries < STEP_TRIES; tries++) {
      const current = turn.rows.flatMap((row) => this.#rows.get(row.id) ?? []);
      if (this.#table === undefined) return this.#closePlain(current, mark, added);
      const mine = current.filter((row) => !row.processed && row.generationId === turn.generationId);
      const others = current.filter((row) => row.processed === false && row.generationId !== turn.generationId);
      // With a callback of one's own the messages may be marked already; else somebody else has answered.
      if (others.length > 0 || (mine.length < current.length && added.length > 0)) return false;
      if (current.length === 0 && status !== "failed" && status !== "cancelled") return false;
      if (added.length > 0 && this.lost(turn) !== undefined) return false;
      const conditions = this.#config.hooks?.conditions?.(turn.generationId) ?? [];
      const when = [...mine.map((row) => this.#unchanged(row.id)), ...conditions];
      const changes = [
        ...mine.map((row) => this.#update(mark(row))),
        ...added.map((row) => this.#insert(row)),
        ...this.#changes(turn, status, fence, error),
      ];
      if (changes.length === 0) return true;
      if (await this.#write(changes, { ...fence, when: [...(fence.when ?? []), ...when] })) return true;
      const { log } = this.#rows;
      if (!when.some((one) => log?.table(one.table).version(one.key) !== one.version)) return false;
    }
    throw new PerdureError(
      "conflict",
      `The messages of "${this.#config.name}" change too often for an answer to be stored.`,
    );
  }

  async #closePlain(
    current: readonly AgentMessage[],
    mark: (row: AgentMessage) => AgentMessage,
    added: readonly AgentMessage[],
  ): Promise<boolean> {
    for (const row of added) await this.#rows.insert(row);
    for (const row of current) {
      this.#begun.delete(row.id);
      if (!row.processed) await this.#rows.update(row.id, (draft) => void Object.assign(draft, mark(draft)));
    }
    return true;
  }

  #withBegun(row: AgentMessage): AgentMessage {
    const begun = this.#begun.get(row.id);
    return begun === undefined ? row : { ...row, ...begun };
  }

  #know(generationId: string): void {
    if (this.#known === undefined) return;
    if (this.#known.size >= KNOWN_GENERATIONS) {
      const pending = new Set(this.#inbox.read().map((row) => row.generationId));
      for (const id of this.#known) if (!pending.has(id)) this.#known.delete(id);
    }
    this.#known.add(generationId);
  }

  #isForeign(row: AgentMessage): boolean {
    return this.#known !== undefined && row.generationId !== undefined && !this.#known.has(row.generationId);
  }

  /** Whether the row's answer waits for its tools. */
  #sleeps(row: AgentMessage): boolean {
    return row.generationId !== undefined && this.#config.hooks?.isSuspended?.(row.generationId) === true;
  }

  #changes(turn: MessageTurn, status: AgentTurnStatus, fence: RowOptions, error?: Error): readonly RowChange[] {
    const { generationId, attempt } = turn;
    if (this.#table === undefined) return [];
    const writer = fence.producer === undefined ? {} : { writer: fence.producer };
    const step = { agentName: this.#config.name, generationId, attempt, ...writer };
    return this.#config.hooks?.changes?.(step, status, error) ?? [];
  }

  #update(row: AgentMessage): RowChange {
    return {
      table: this.#table ?? "",
      key: row.id,
      operation: "update",
      value: this.#admit(row, this.#rows.get(row.id)),
    };
  }

  #insert(row: AgentMessage): RowChange {
    return { table: this.#table ?? "", key: row.id, operation: "insert", value: this.#admit(row) };
  }

  #unchanged(key: string): RowCondition {
    return this.#rows.unchanged(key) ?? { table: this.#table ?? "", key, version: 0 };
  }

  async #write(changes: readonly RowChange[], options: RowOptions): Promise<boolean> {
    const log = this.#rows.log;
    if (log === undefined) return false;
    return (await log.write({ changes, ...options })).applied;
  }
}

/** As many of the messages, from the first on, as every backend takes in one write. */
function oneWrite(rows: readonly AgentMessage[]): AgentMessage[] {
  let characters = 0;
  const end = rows.findIndex((row, index) => {
    characters += String(row.content).length;
    return index >= TURN_MESSAGES || (index > 0 && characters > TURN_CHARACTERS);
  });
  return rows.slice(0, end === -1 ? rows.length : end);
}

function has(rows: readonly AgentMessage[], row: AgentMessage): boolean {
  return rows.some((one) => one.id === row.id);
}

function replyRowId(generationId: string): string {
  return `${generationId}:reply`;
}

/**
 * The rows of an answer: what the model said and was told on the way, then the reply. Their ids derive from the generation's, so
 * no answer is stored twice; the reply names the request that it answers.
 */
function replyRows(agentName: string, turn: Turn<AgentMessage>, reply: AgentReply): AgentMessage[] {
  const { generationId } = turn;
  const last = turn.rows.at(-1);
  const base = {
    actorId: agentName,
    targetAgent: last?.actorId ?? agentName,
    processed: true,
    generationId,
  };
  const steps = stepsOf(reply).map((message, index): AgentMessage => ({
    ...base,
    id: `${generationId}:${index}`,
    createdAt: createdNow(),
    ...stepFields(message),
  }));
  const answer: AgentMessage = {
    ...base,
    id: replyRowId(generationId),
    createdAt: createdNow(),
    role: "assistant",
    content: reply.content,
  };
  return [...steps, last?.requestId === undefined ? answer : { ...answer, inReplyTo: last.requestId }];
}

/** The messages of a reply without the answer itself and without what others said. */
function stepsOf(reply: AgentReply): ModelMessage[] {
  const messages = (reply.messages ?? []).filter((message) => message.role !== "user");
  const last = messages.at(-1);
  const isAnswer = last?.role === "assistant" && (last.toolCalls?.length ?? 0) === 0;
  return isAnswer ? messages.slice(0, -1) : messages;
}

function stepFields(message: ModelMessage): Pick<AgentMessage, "role" | "content"> & Partial<AgentMessage> {
  const content = textOf(message.content);
  if (message.role === "tool") return { role: "tool", content, toolCallId: message.toolCallId ?? "" };
  const toolCalls = (message.toolCalls ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return { role: "assistant", content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
}

/** The text of a message's content; parts that are no text are left out. */
function textOf(content: ModelMessage["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (part.type === "text" ? part.content : "")).join("");
}

/** The messages that wait for an agent, kept current. */
interface Inbox {
  readonly ready: Promise<void>;
  /** Oldest first, as they were confirmed. */
  read(): AgentMessage[];
  dispose(): Promise<void>;
}

/** Calls `wake` when messages come or go. `query`: which messages are work, instead of those that are unprocessed. */
function openInbox(
  agentName: string,
  messages: MessageCollection,
  query: RowQuery<Context> | undefined,
  wake: () => void,
): Inbox {
  return query === undefined ? allInbox(agentName, messages, wake) : queryInbox(agentName, messages, query, wake);
}

const WAITING = "waiting";

/** By the rows that their backend has confirmed: neither held back by own optimistic writes, nor slower with more messages. */
function allInbox(agentName: string, messages: MessageCollection, wake: () => void): Inbox {
  let index: RowIndex<AgentMessage> | undefined;
  let disposed = false;
  const nameOf = (row: AgentMessage & { readonly $hasPendingWrites?: boolean }) =>
    isWaiting(agentName, row) && row.$hasPendingWrites !== true ? WAITING : undefined;
  const start = () => {
    if (disposed) return;
    index = indexRows(messages, nameOf, wake);
    wake();
  };
  return {
    ready: rowsOf(messages).ready().then(start),
    read: () => index?.rows(WAITING).toSorted(byPlace) ?? [],
    dispose: async () => {
      disposed = true;
      index?.stop();
    },
  };
}

function queryInbox(agentName: string, messages: MessageCollection, query: RowQuery<Context>, wake: () => void): Inbox {
  const rows = rowsOf(messages);
  const watch = watchQuery(query, wake);
  const read = () => {
    const listed = watch.rows().flatMap((row) => {
      const id = (row as { id?: unknown }).id;
      return (typeof id === "string" ? rows.get(id) : undefined) ?? [];
    });
    // The query may lag behind the log: what was answered is no work, whatever it says.
    return listed.filter((row) => isWaiting(agentName, row) || row.targetAgent !== agentName).toSorted(byPlace);
  };
  return { ready: Promise.all([rows.ready(), watch.ready]).then(wake), read, dispose: () => watch.dispose() };
}
