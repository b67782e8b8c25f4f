import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PerdureError } from "../../../base/error.ts";
import { reporter } from "../../retry.ts";
import { newId } from "../../../base/id.ts";
import {
  MAX_ROW_CHANGES,
  MAX_ROW_WRITE_LENGTH,
  ROW_FRAME_START,
  type RowErrorFrame,
  type RowReceiptFrame,
  type RowRequestFrame,
  type RowServerFrame,
  type RowWrite,
} from "../../../wire/row-frames.ts";
import {
  type PlainConfig,
  type PlainOptions,
  type SchemaConfig,
  type SchemaOptions,
  type UntypedLogConfig,
  untypedLogOptions,
} from "../collection-options.ts";
import type { QuarantinedMessage, RowLog, RowTable, WriteReceipt } from "../row-log.ts";
import { RowState } from "../row-state.ts";
import { asJson, requireWrite } from "../row-write.ts";
import { isOpen, sourceOf, toldError, whyGone, type AgentSocket } from "./agent-socket.ts";
import { TableFollower } from "./follow-tables.ts";

const POSITION_DIGITS = 16;

interface AgentLogOptions {
  /** The connection to the agent. It may be used for everything else at the same time: state, calls, chat. */
  readonly agent: AgentSocket;
  /** Read from the start; others once asked for, so ask before you await `ready`. `all`: whatever this client may read. */
  readonly collections?: readonly string[] | "all";
  /** Told what listeners throw. Must not throw. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

/** Of each connection its log. */
const logs = new WeakMap<AgentSocket, AgentLog>();

/**
 * A Perdure agent's collections as a log, one per connection: opening it again returns the same one. After a lost connection it
 * resumes where it was; unanswered writes are sent again under their names, and count once. Closing it leaves the connection
 * open.
 */
export function openAgentLog(options: AgentLogOptions): RowLog {
  const { agent, onError } = options;
  if (typeof agent?.addEventListener !== "function") {
    throw new PerdureError(
      "bad_config",
      "`agent` must be a client: new AgentClient({ … }), or the result of useAgent().",
    );
  }
  let log = logs.get(agent);
  if (log === undefined) logs.set(agent, (log = new AgentLog(agent, reporter(onError))));
  if (options.collections === "all") log.followAll();
  else for (const name of options.collections ?? []) log.table(name, true);
  return log;
}

class AgentLog implements RowLog {
  readonly kind = "perdure";
  readonly source: string;
  /** An agent looks at each write before it stores it. */
  readonly quarantined: readonly QuarantinedMessage[] = [];
  readonly #socket: AgentSocket;
  readonly #state: RowState;
  readonly #follower: TableFollower;
  readonly #outbox = new Outbox();
  #furthest = 0;
  #closed = false;
  /** Why nothing comes or goes: it is closed, or its connection does not come back by itself. */
  #over: PerdureError | undefined;

  constructor(socket: AgentSocket, onError: (error: unknown) => void) {
    this.#socket = socket;
    this.source = sourceOf(socket);
    this.#state = new RowState(onError, (table) => this.#follower.want(table));
    this.#follower = new TableFollower(this.#state, (frame) => this.#send(frame));
    socket.addEventListener("open", this.#opened);
    socket.addEventListener("close", this.#lost);
    socket.addEventListener("message", this.#received);
    if (isOpen(socket)) this.#opened();
    else this.#giveUpIf(whyGone(socket));
  }

  get ready(): Promise<void> {
    return this.#follower.ready;
  }

  /** Also of another agent that has taken this one's place: never lower than before. */
  get position(): string {
    this.#furthest = Math.max(this.#furthest, this.#follower.seq);
    return positionOf(this.#furthest);
  }

  /** @param named whether `ready` has to wait for its rows. */
  table(name: string, named = false): RowTable {
    void this.#follower.want(name, named);
    return this.#state.table(name);
  }

  followAll(): void {
    this.#follower.wantAll();
  }

  async write(write: RowWrite): Promise<WriteReceipt> {
    requireWrite(write);
    if (this.#over !== undefined) throw this.#over;
    // Who awaits the write can read what it wrote, so it has to be followed.
    const tables = [...new Set(write.changes.map(({ table }) => table))];
    for (const name of tables) this.table(name);
    const { frame, outcome } = this.#outbox.add(write);
    if (frame !== undefined && isOpen(this.#socket)) this.#socket.send(frame);
    const { applied, refused, seq } = await outcome;
    await Promise.all(tables.map((name) => this.#follower.whenLive(name)));
    if (this.#over !== undefined) throw this.#over;
    this.#furthest = Math.max(this.#furthest, seq);
    return { applied, position: positionOf(seq), refused };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (logs.get(this.#socket) === this) logs.delete(this.#socket);
    this.#socket.removeEventListener("open", this.#opened);
    this.#socket.removeEventListener("close", this.#lost);
    this.#socket.removeEventListener("message", this.#received);
    if (isOpen(this.#socket)) this.#send({ type: "perdure_rows_unsubscribe" });
    this.#giveUp(`The log "${this.source}" is closed.`);
  }

  readonly #opened = (): void => {
    this.#over = undefined;
    // Some sockets come back without having said that they were gone.
    this.#follower.lost();
    this.#follower.opened();
    for (const frame of this.#outbox.frames()) this.#socket.send(frame);
  };

  readonly #lost = (event: Event): void => {
    this.#follower.lost();
    this.#giveUpIf(whyGone(this.#socket, event));
  };

  /** Who waits is told, instead of waiting for ever. If the app connects again, it goes on all the same. */
  #giveUpIf(why: string | undefined): void {
    if (why !== undefined) this.#giveUp(`"${this.source}" cannot be reached any more. ${why}`);
  }

  #giveUp(why: string): void {
    this.#over = new PerdureError("disconnected", why);
    this.#follower.fail(this.#over);
    this.#outbox.fail(this.#over);
  }

  readonly #received = (event: Event): void => {
    const { data } = event as MessageEvent<unknown>;
    // Most frames of the connection are about something else, and long ones should not be parsed for nothing.
    if (typeof data !== "string" || !data.startsWith(ROW_FRAME_START)) return;
    // Only the agent sends on this connection, and it sends only what it made itself.
    const frame = JSON.parse(data) as RowServerFrame;
    if (frame.type === "perdure_rows_page") this.#follower.page(frame);
    else if (frame.type === "perdure_rows_changed") this.#follower.changed(frame);
    else if (frame.type === "perdure_rows_receipt") this.#outbox.receipt(frame);
    else if (frame.type === "perdure_rows_error") {
      this.#outbox.error(frame);
      if (frame.id !== undefined) this.#follower.refused(frame.id, frame.error);
      if (frame.collection !== undefined) this.#follower.lose(frame.collection, frame.error);
    }
  };

  #send(frame: RowRequestFrame): void {
    this.#socket.send(JSON.stringify(frame));
  }
}

function positionOf(seq: number): string {
  return String(seq).padStart(POSITION_DIGITS, "0");
}

/**
 * Options for `createCollection`: rows that a Perdure agent keeps (`getCollections()` of its class). All collections of one
 * connection share one log, `collection.utils.log`. See `logCollectionOptions` for what writes promise.
 */
export function perdureCollectionOptions<TSchema extends StandardSchemaV1>(
  config: SchemaConfig<TSchema> & { readonly agent: AgentSocket },
): SchemaOptions<TSchema>;
export function perdureCollectionOptions<TRow extends object>(
  config: PlainConfig<TRow> & { readonly agent: AgentSocket },
): PlainOptions<TRow>;
export function perdureCollectionOptions({
  agent,
  ...config
}: Omit<UntypedLogConfig, "log"> & { readonly agent: AgentSocket }): object {
  return untypedLogOptions({ ...config, log: openAgentLog({ agent }) });
}

interface Unanswered {
  readonly frame: string;
  readonly outcome: PromiseWithResolvers<RowReceiptFrame>;
}

/** Writes that the agent has not answered, in their order. Each is sent on every connection until it is: they have names. */
class Outbox {
  readonly #unanswered = new Map<string, Unanswered>();

  /**
   * Keeps a write until it is answered.
   * @returns its frame, when it is new, and its outcome
   * @throws PerdureError `limit` or `too_large` for one that no agent takes, `bad_input` for what JSON cannot hold.
   */
  add(write: RowWrite): { readonly frame?: string; readonly outcome: Promise<RowReceiptFrame> } {
    const { txid = newId(), changes, when, producer } = write;
    const known = this.#unanswered.get(txid);
    if (known !== undefined) return { outcome: known.outcome.promise };
    if (changes.length > MAX_ROW_CHANGES || (when?.length ?? 0) > MAX_ROW_CHANGES) {
      throw new PerdureError("limit", `A write may have at most ${MAX_ROW_CHANGES} changes. Split it.`);
    }
    const frame = asJson({ type: "perdure_rows_write", txid, changes, when, producer });
    if (frame.length > MAX_ROW_WRITE_LENGTH) {
      throw new PerdureError(
        "too_large",
        `A write may have at most ${MAX_ROW_WRITE_LENGTH} characters; this one has ${frame.length}. Split it.`,
      );
    }
    const outcome = Promise.withResolvers<RowReceiptFrame>();
    this.#unanswered.set(txid, { frame, outcome });
    return { frame, outcome: outcome.promise };
  }

  /** All that is to be sent on a new connection. */
  frames(): string[] {
    return [...this.#unanswered.values()].map(({ frame }) => frame);
  }

  receipt(frame: RowReceiptFrame): void {
    this.#take(frame.txid)?.outcome.resolve(frame);
  }

  error({ txid, error }: RowErrorFrame): void {
    if (txid !== undefined) this.#take(txid)?.outcome.reject(toldError(error));
  }

  fail(error: PerdureError): void {
    for (const { outcome } of this.#unanswered.values()) outcome.reject(error);
    this.#unanswered.clear();
  }

  #take(txid: string): Unanswered | undefined {
    const one = this.#unanswered.get(txid);
    this.#unanswered.delete(txid);
    return one;
  }
}
