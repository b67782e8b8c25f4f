import { PerdureError } from "../../base/error.ts";
import { encodeFrame } from "../../wire/encode.ts";
import type { ParsedFrame } from "../../wire/parse.ts";
import type { AppliedRowChange, RowWrite } from "../../wire/row-frames.ts";
import { AgentCollection } from "./collection.ts";
import { CollectionRows, type RowOutcome, type RowSource } from "./rows.ts";
import { sendPage, unfollow } from "./pages.ts";
import { type Collections, isMistake, rowError } from "./rules.ts";
import type { Connection } from "../../door/connection.ts";
import type { AgentPart, OwnAgent } from "../part.ts";

/** What the collections ask of the class. */
export interface CollectionHooks {
  getCollections(): Collections;
  onCollectionChange(changes: readonly AppliedRowChange[], source: RowSource): void | Promise<void>;
}

const ROW_KINDS: ReadonlySet<ParsedFrame["kind"]> = new Set([
  "rows-subscribe",
  "rows-unsubscribe",
  "rows-write",
  "rows-refused",
]);

/** Joins the collections to their agent: frames in, and what server code does with them. */
export class RowsPart implements AgentPart {
  readonly #own: OwnAgent;
  readonly #hooks: CollectionHooks;
  #opened: CollectionRows | undefined;
  #collections: Collections | undefined;

  constructor(own: OwnAgent, hooks: CollectionHooks) {
    this.#own = own;
    this.#hooks = hooks;
  }

  open<TRow extends object>(name: string): AgentCollection<TRow> {
    return new AgentCollection<TRow>(this.#rows, name);
  }

  write(write: RowWrite): RowOutcome {
    return this.#rows.write(write, "server");
  }

  readonly kinds = ROW_KINDS;

  frame(connection: Connection, frame: ParsedFrame): void {
    switch (frame.kind) {
      case "rows-subscribe":
        return sendPage(this.#rows, connection, frame);
      case "rows-unsubscribe":
        return unfollow(connection, frame.collections);
      case "rows-write":
        return this.#answer(connection, frame.txid, frame.write);
      case "rows-refused":
        this.#own.host.emit("frame:refused", { connectionId: connection.id, reason: frame.reason });
        return this.refuse(connection, frame, new PerdureError(frame.code ?? "bad_input", frame.reason));
      default:
    }
  }

  refuse(connection: Connection, frame: ParsedFrame, error: PerdureError): void {
    const { id, txid } = frame as { readonly id?: string; readonly txid?: string };
    const about = { ...(id !== undefined && { id }), ...(txid !== undefined && { txid }) };
    connection.send(encodeFrame({ type: "perdure_rows_error", ...about, error: rowError(error) }));
  }

  /** The receipt leaves when the write is durable, and behind its changes: both wait in the same line. */
  #answer(connection: Connection, txid: string, write: RowWrite): void {
    try {
      const outcome = this.#rows.write(write, connection);
      connection.send(encodeFrame({ type: "perdure_rows_receipt", txid, ...outcome }));
    } catch (thrown) {
      connection.send(encodeFrame({ type: "perdure_rows_error", txid, error: rowError(thrown) }));
      // Whatever a client may cause is no failure of the agent.
      if (isMistake(thrown)) throw thrown;
    }
  }

  get #rows(): CollectionRows {
    return (this.#opened ??= new CollectionRows(this.#own.host, {
      collections: () => (this.#collections ??= this.#hooks.getCollections()),
      changed: (changes, source) => this.#changed(changes, source),
      connections: () => this.#connections(),
      failed: (error) => void this.#own.failed(error, { stage: "collections" }),
    }));
  }

  *#connections(): Generator<Connection> {
    for (const socket of this.#own.host.sockets.all()) yield this.#own.connections.of(socket);
  }

  /** Best effort: the change stands whatever becomes of this. */
  #changed(changes: readonly AppliedRowChange[], source: RowSource): void {
    const hooks = this.#hooks;
    void (async () => hooks.onCollectionChange(changes, source))().catch((error: unknown) =>
      this.#own.failed(error, { stage: "onCollectionChange" }),
    );
  }
}
