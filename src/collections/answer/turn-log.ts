import type { ChatMiddleware, ChatMiddlewareContext, ModelMessage } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import type { RowLog } from "../log/row-log.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import { rowsOf, type RowCollection, type RowOptions, type Rows } from "../log/rows.ts";

/**
 * One message of an answer under way (what the model said when it called tools, or a tool's result), so that any process can go
 * on from there; or the head, the one row that describes the answer as a whole.
 */
export interface TurnRecord {
  /** `<generation id>:<index>`; of the head `<generation id>:head`. */
  id: string;
  generationId: string;
  /** 0, 1, 2, …; of the head -1. */
  index: number;
  /** How many chunks were stored with it and before it: what lies behind belongs to a turn that was cut off. */
  chunkIndex: number;
  message?: ModelMessage;
  /** Of the head: how often the answer was taken up. The head's version is the fence of a run. */
  run?: number;
  state?: "running" | "suspended" | "completed";
  finishReason?: string | null;
}

const HEAD = -1;

/** The turns of one answer, as one run reads and writes them. Without a collection it remembers nothing. */
export class TurnLog {
  /** The messages of the turns so far, in order. */
  readonly messages: ModelMessage[] = [];
  /** How many chunks belong to them. */
  chunkIndex = 0;
  /** Whether an earlier run has left anything. */
  hasPast = false;
  /** Set when the answer is complete: nothing is left to do. */
  completed: { readonly finishReason: string | null } | undefined;
  readonly #rows: Rows<TurnRecord> | undefined;
  readonly #generationId: string;
  readonly #options: () => RowOptions;
  readonly #known = new Set<string>();
  /** The head as this run has written it last. */
  #head: RowCondition | undefined;
  #isNew = true;

  /** `options`: what each write must carry besides the fence of the run. */
  constructor(collection: RowCollection<TurnRecord> | undefined, generationId: string, options: () => RowOptions) {
    this.#rows = collection === undefined ? undefined : rowsOf(collection);
    this.#generationId = generationId;
    this.#options = options;
  }

  /** Reads what is there. */
  async load(): Promise<void> {
    if (this.#rows === undefined) return;
    await this.#rows.ready();
    const head = this.#rows.get(this.#headId);
    this.#head = this.#rows.unchanged(this.#headId);
    this.#isNew = head === undefined;
    this.hasPast = !this.#isNew;
    for (let row = this.#rowAt(0); row?.message !== undefined; row = this.#rowAt(this.messages.length)) {
      this.#remember(row.message);
      this.chunkIndex = row.chunkIndex;
    }
    if (head !== undefined) this.chunkIndex = Math.max(this.chunkIndex, head.chunkIndex);
    const last = this.messages.at(-1);
    const hasAnswer = last?.role === "assistant" && (last.toolCalls ?? []).length === 0;
    // The answer is written before the head: a crash in between leaves it complete all the same.
    if (head?.state === "completed" || hasAnswer) this.completed = { finishReason: head?.finishReason ?? null };
  }

  /**
   * Takes the answer up as it was loaded: from here on all earlier runs of it are shut out.
   * @throws PerdureError `fenced` when another run has begun since then: of two that start at once, one goes on.
   */
  async begin(): Promise<void> {
    if (this.#rows === undefined) return;
    const id = this.#headId;
    const generationId = this.#generationId;
    const { chunkIndex } = this;
    const head = { id, generationId, index: HEAD, chunkIndex, run: 1, state: "running" } satisfies TurnRecord;
    const taken = this.#isNew
      ? await this.#rows.insert(head, this.#fenced())
      : await this.#changeHead((row) => {
          row.run = (row.run ?? 0) + 1;
          row.state = "running";
        });
    if (!taken) throw overtaken(this.#generationId);
    if (this.#isNew) this.#advance();
    this.#isNew = false;
  }

  /** Stores those messages that are not stored yet, together. @throws PerdureError `fenced`. */
  async add(messages: readonly ModelMessage[], chunkIndex: number): Promise<void> {
    const more = messages.filter((message) => !this.#known.has(messageKey(message)));
    if (more.length === 0) return;
    const rows = more.map((message, offset): TurnRecord => {
      const index = this.messages.length + offset;
      const id = `${this.#generationId}:${index}`;
      return { id, generationId: this.#generationId, index, chunkIndex, message: kept(message) };
    });
    if ((await this.#rows?.insertAll(rows, this.#fenced())) === false) throw overtaken(this.#generationId);
    for (const message of more) this.#remember(message);
    this.chunkIndex = chunkIndex;
  }

  /** Says how the run has ended. @throws PerdureError `fenced`. */
  async end(state: "suspended" | "completed", chunkIndex: number, finishReason: string | null): Promise<void> {
    if (this.#rows === undefined) return;
    const written = await this.#changeHead((head) => Object.assign(head, { state, chunkIndex, finishReason }));
    if (!written) throw overtaken(this.#generationId);
  }

  /** What a write to this log must carry so that it is refused once another run has taken the answer up. */
  fence(log: RowLog | undefined): readonly RowCondition[] {
    return this.#head === undefined || log === undefined || log !== this.#rows?.log ? [] : [this.#head];
  }

  get #headId(): string {
    return `${this.#generationId}:head`;
  }

  #rowAt(index: number): TurnRecord | undefined {
    return this.#rows?.get(`${this.#generationId}:${index}`);
  }

  #remember(message: ModelMessage): void {
    this.messages.push(message);
    this.#known.add(messageKey(message));
  }

  async #changeHead(change: (head: TurnRecord) => unknown): Promise<boolean> {
    const written = await this.#rows?.update(this.#headId, (row) => void change(row), this.#fenced());
    if (written === true) this.#advance();
    return written === true;
  }

  #advance(): void {
    // Counted, not read: what can be read by now may already be somebody else's.
    if (this.#head !== undefined) this.#head = { ...this.#head, version: this.#head.version + 1 };
  }

  #fenced(): RowOptions {
    const options = this.#options();
    return { ...options, when: [...(options.when ?? []), ...this.fence(this.#rows?.log)] };
  }
}

/** Names a message within its answer. */
function messageKey(message: ModelMessage): string {
  if (message.role === "tool") return `tool ${message.toolCallId}`;
  const call = message.toolCalls?.[0];
  return call === undefined ? `text ${message.id}` : `calls ${call.id}`;
}

/** As it can be stored: dates would come back as texts. */
function kept({ createdAt: _createdAt, ...message }: ModelMessage): ModelMessage {
  return message;
}

function overtaken(generationId: string): PerdureError {
  const text = `Another run has taken up the answer "${generationId}". Stop this one.`;
  return new PerdureError("fenced", text);
}

/** Keeps the turns of a run of `chat()` as they come. */
interface TurnRecorder {
  readonly middleware: ChatMiddleware;
  /** Stores the turns that are not stored yet. */
  save(): Promise<void>;
}

/**
 * Stores each turn before its tools run and before the next model call, so that a run cut off in between resumes without asking
 * the model twice.
 * @param flush stores the chunks so far and returns their number: a turn is never stored before its chunks.
 */
export function recordTurns(turnLog: TurnLog, flush: () => Promise<number>): TurnRecorder {
  let context: ChatMiddlewareContext | undefined;
  const given = new Set<string>();

  async function save(): Promise<void> {
    const mine = (context?.messages ?? []).filter((message) => isTurn(message) && !given.has(messageKey(message)));
    if (mine.length > 0) await turnLog.add(mine, await flush());
  }

  return {
    save,
    middleware: {
      name: "perdure-turns",
      onStart(started) {
        context = started;
        for (const message of started.messages) given.add(messageKey(message));
      },
      async onInterruptBoundary({ phase }) {
        if (phase === "beforeTools" || phase === "beforeModel") await save();
        return undefined;
      },
    },
  };
}

function isTurn(message: Pick<ModelMessage, "role">): boolean {
  return message.role === "assistant" || message.role === "tool";
}
