import { PerdureError } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import { MAX_FOLLOWED, rowNameProblem } from "../../../wire/row-frames.ts";
import type {
  PageRow,
  RowCursor,
  RowError,
  RowPageFrame,
  RowRequestFrame,
  RowsChangedFrame,
} from "../../../wire/row-frames.ts";
import type { AppliedChange } from "../row-log.ts";
import type { RowState } from "../row-state.ts";
import { toldError } from "./agent-socket.ts";

/** The code of what was taken away. */
const NOT_ALLOWED = "not_allowed";

/** One table that is followed, or about to be. */
class Followed {
  readonly name: string;
  /** The agent tells of every change from here on. */
  live = false;
  /** How far it was read, the rows in `pages` included. */
  cursor: RowCursor = 0;
  /** Rows that wait for the last page: half of them would be a state that never was. */
  pages: PageRow[] = [];
  /** What was there before is to be forgotten. */
  reset = false;
  refused = false;
  /** It was named when the log was opened. */
  named = false;
  /** Settles when its rows are here for the first time. One that was rejected is another with the next connection. */
  ready = withResolvers();
  failed = false;
  /** Those who wait until it is live. */
  waiting: (() => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  goLive(): void {
    this.live = true;
    this.ready.resolve();
    this.#release();
  }

  refuse(error: PerdureError): void {
    this.refused = true;
    this.reject(error);
  }

  reject(error: PerdureError): void {
    this.failed = true;
    this.ready.reject(error);
    this.#release();
  }

  #release(): void {
    for (const go of this.waiting.splice(0)) go();
  }
}

/**
 * Follows tables of an agent: fetches rows page by page, applies them at once with the last page, then follows what the agent
 * tells. Resumes after a lost connection. One question at a time.
 */
export class TableFollower {
  /** The last write that was seen. */
  seq = 0;
  readonly #state: RowState;
  readonly #send: (frame: RowRequestFrame) => void;
  readonly #tables = new Map<string, Followed>();
  #life = "";
  #connected = false;
  #asking: string | undefined;
  #asked: readonly string[] = [];
  /** Whether the last question was about every table. */
  #askedAll = false;
  #willAsk = false;
  /** Every table is wanted. */
  #all: PromiseWithResolvers<void> | undefined;
  #allLive = false;
  /** Every name is a table, so that one that is not known has no rows yet. */
  #isOpen = false;
  /** Why nothing is followed, from `fail` until a connection is there again. */
  #failure: PerdureError | undefined;

  constructor(state: RowState, send: (frame: RowRequestFrame) => void) {
    this.#state = state;
    this.#send = send;
  }

  /** Follows a table from now on. `named`: {@link TableFollower.ready} depends on it. @returns when its rows are here. */
  want(name: string, named = false): Promise<void> {
    const known = this.#tables.get(name);
    if (known !== undefined) {
      known.named ||= named;
      return known.ready.promise;
    }
    const problem = rowNameProblem(name);
    // It is not even asked for: the whole question would be refused.
    if (problem !== undefined) return failed(new PerdureError("bad_input", `The name of a collection ${problem}.`));
    const table = this.#add(name);
    table.named = named;
    if (this.#failure !== undefined) table.reject(this.#failure);
    else if (this.#allLive && this.#isOpen) table.goLive();
    else this.#askSoon();
    return table.ready.promise;
  }

  /** Follows every table that there is and will be. */
  wantAll(): void {
    if (this.#all !== undefined) return;
    this.#all = withResolvers();
    if (this.#failure !== undefined) this.#all.reject(this.#failure);
    else this.#askSoon();
  }

  /** Resolves when all that is wanted so far is here. A table that one user of the log got wrong is no other's problem. */
  get ready(): Promise<void> {
    const all = [...this.#tables.values()].map((table) =>
      table.ready.promise.catch((error: unknown) => {
        if (table.named || !table.refused) throw error;
      }),
    );
    return Promise.all([...all, this.#all?.promise]).then(() => undefined);
  }

  /** Resolves when the table is up to date with the connection, or cannot be followed at all. */
  async whenLive(name: string): Promise<void> {
    const table = this.#tables.get(name);
    if (table === undefined || table.live || table.refused || this.#failure !== undefined) return;
    await new Promise<void>((resolve) => table.waiting.push(resolve));
  }

  opened(): void {
    this.#connected = true;
    if (this.#failure !== undefined && this.#all !== undefined) this.#all = withResolvers();
    this.#failure = undefined;
    for (const table of this.#tables.values()) {
      if (table.failed) Object.assign(table, { failed: false, ready: withResolvers() });
    }
    this.#ask();
  }

  lost(): void {
    this.#connected = false;
    this.#asking = undefined;
    this.#allLive = false;
    for (const table of this.#tables.values()) {
      if (table.live) table.cursor = this.seq;
      table.live = false;
      // A new agent of this name may allow what the old one did not.
      table.refused = false;
    }
  }

  /** Nothing is asked before the next connection; who waits for rows, also of further tables, gets this error. */
  fail(error: PerdureError): void {
    this.#failure = error;
    this.#connected = false;
    this.#all?.reject(error);
    for (const table of this.#tables.values()) if (!table.failed) table.reject(error);
  }

  page(frame: RowPageFrame): void {
    if (frame.id !== this.#asking) return;
    this.#life = frame.life;
    this.#isOpen = frame.open === true;
    // What was numbered by an agent that is no more says nothing.
    if (frame.reset !== undefined) this.seq = 0;
    for (const name of frame.reset ?? []) Object.assign(this.#add(name), { pages: [], reset: true });
    for (const row of frame.rows) this.#add(row.table).pages.push(row);
    for (const [name, cursor] of Object.entries(frame.since)) this.#add(name).cursor = cursor;
    for (const [name, error] of Object.entries(frame.refused ?? {})) this.lose(name, error);
    if (frame.seq === undefined) return this.#sendQuestion(frame.id, Object.keys(frame.since));
    this.#asking = undefined;
    for (const name of this.#asked) {
      const isAnswered = Object.hasOwn(frame.since, name) || this.#tables.get(name)?.refused === true;
      if (!isAnswered) this.#add(name).refuse(new PerdureError("not_found", `There is no collection "${name}".`));
    }
    this.#complete(Object.keys(frame.since), Math.max(this.seq, frame.seq));
    if (this.#askedAll) {
      this.#allLive = true;
      this.#all?.resolve();
    }
    this.#ask();
  }

  /** The agent did not understand a question. */
  refused(id: string, told: RowError): void {
    if (id !== this.#asking) return;
    this.#asking = undefined;
    const error = toldError(told);
    for (const name of this.#asked) this.#add(name).refuse(error);
    if (this.#askedAll) {
      this.#all?.reject(error);
      this.#all = undefined;
    }
    this.#ask();
  }

  /** A table may not be read, or not any more: then what was read of it is forgotten. */
  lose(name: string, told: RowError): void {
    const table = this.#add(name);
    const had = table.live || table.cursor !== 0;
    Object.assign(table, { live: false, cursor: 0, pages: [], reset: false });
    // A failed promise of rows that were here says nothing to anybody: who waits from now on is told.
    if (had) table.ready = withResolvers();
    table.refuse(toldError(told));
    if (!had || told.code !== NOT_ALLOWED) return;
    this.#state.clear(name);
    this.#state.emitTable(name, [], true);
  }

  changed(frame: RowsChangedFrame): void {
    if (frame.life !== undefined) this.#life = frame.life;
    this.seq = Math.max(this.seq, frame.seq);
    const applied: AppliedChange[] = [];
    for (const one of frame.changes) {
      let table = this.#tables.get(one.table);
      if (table === undefined && this.#allLive) (table = this.#add(one.table)).goLive();
      // Of one that is still being read, the next page has it.
      if (table?.live !== true) continue;
      applied.push(...this.#adopt({ ...one, value: one.value ?? {}, txid: frame.txid }));
    }
    this.#state.emit(applied);
  }

  /** A question about everything that is not live, after the code that wants tables has said which. */
  #askSoon(): void {
    if (this.#willAsk) return;
    this.#willAsk = true;
    queueMicrotask(() => {
      this.#willAsk = false;
      this.#ask();
    });
  }

  #ask(): void {
    if (!this.#connected || this.#asking !== undefined) return;
    const names = [...this.#tables.values()].filter(({ live, refused }) => !live && !refused).map(({ name }) => name);
    if (names.length === 0 && (this.#all === undefined || this.#allLive)) return;
    this.#asking = newId();
    this.#asked = this.#all === undefined ? names.slice(0, MAX_FOLLOWED) : names;
    this.#sendQuestion(this.#asking, this.#asked);
  }

  #sendQuestion(id: string, names: readonly string[]): void {
    this.#askedAll = this.#all !== undefined;
    this.#send({
      type: "perdure_rows_subscribe",
      id,
      ...(this.#life === "" ? {} : { life: this.#life }),
      since: Object.fromEntries(names.map((name) => [name, this.#tables.get(name)?.cursor ?? 0])),
      ...(this.#askedAll ? { all: true } : {}),
    });
  }

  #complete(names: readonly string[], seq: number): void {
    this.seq = seq;
    const told = names.map((name) => {
      const table = this.#add(name);
      const { pages, reset } = table;
      Object.assign(table, { pages: [], reset: false, cursor: seq });
      if (reset) this.#state.clear(name);
      const changes = pages.flatMap((row) =>
        this.#adopt({ ...row, operation: row.value === undefined ? "delete" : "update", value: row.value ?? {} }),
      );
      return { table, changes, reset };
    });
    // All of them first: who is told of one table may read another.
    for (const { table, changes, reset } of told) {
      if (reset || changes.length > 0) this.#state.emitTable(table.name, changes, reset);
      table.goLive();
    }
  }

  /** Takes a row over. Nothing, when it is known, or was deleted before anybody here had seen it. */
  #adopt(change: AppliedChange): AppliedChange[] {
    const table = this.#state.table(change.table);
    if (change.version <= table.version(change.key)) return [];
    const wasThere = table.get(change.key) !== undefined;
    const applied = this.#state.adopt(change);
    return change.operation === "delete" && !wasThere ? [] : [applied];
  }

  #add(name: string): Followed {
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new Followed(name)));
    return table;
  }
}

function failed(error: PerdureError): Promise<void> {
  const { promise, reject } = withResolvers();
  reject(error);
  return promise;
}

/** Whoever needs the outcome awaits it; nobody has to. */
function withResolvers(): PromiseWithResolvers<void> {
  const deferred = Promise.withResolvers<void>();
  deferred.promise.catch(() => undefined);
  return deferred;
}
