import { PerdureError } from "../../base/error.ts";
import { isCount, isRecord, tryParseJson } from "../../base/json.ts";
import type { Sql } from "../../port.ts";
import { deleteCell, deleteCells, listCells, readCell, writeCell } from "../../store/cell.ts";
import { deleteFilesOf, LIVE } from "../../store/file.ts";
import type { WorkspacePoint } from "./types.ts";

/** Longer ids of messages are refused. */
const MAX_ID = 512;
/** When there are too many points, this part of them goes at once: so most marks need not look at the others. */
const TRIMMED_PART = 10;
/** Of a workspace without files, so many of the newest points are remembered. */
const MAX_EARLY = 100;

/**
 * The counter of a namespace. Version 0 is the empty tree. Changes belong to version `version`; the first change after
 * a point was made at it begins the next one. So rows with `since <= newest` are needed by a point, and no others.
 */
export interface Counter {
  readonly version: number;
  /** The newest version that is a point. */
  readonly newest: number;
  /** How many points there are. */
  readonly points: number;
}

const UNUSED: Counter = { version: 0, newest: 0, points: 0 };

/** The versions and points of one namespace: cells, and what they mean for the rows. */
export class Versions {
  readonly #db: Sql;
  readonly #ns: string;
  readonly #key: string;
  readonly #prefix: string;
  /** Points of the empty tree that was never used: only in memory, so that agents without files write nothing. */
  #early: WorkspacePoint[] = [];

  constructor(db: Sql, ns: string) {
    this.#db = db;
    this.#ns = ns;
    this.#key = `workspace:${ns}`;
    this.#prefix = `workspace-point:${ns}:`;
  }

  /** @throws PerdureError `bad_state` when what is stored is no counter: what went on from zero would mix up all versions */
  counter(): Counter {
    const stored = readCell(this.#db, this.#key);
    if (stored === undefined) return UNUSED;
    const value = tryParseJson(stored);
    if (isRecord(value)) {
      const { version, newest, points } = value;
      if (isCount(version) && isCount(newest) && isCount(points)) return { version, newest, points };
    }
    throw new PerdureError(
      "bad_state",
      `The history of the files in "${this.#ns}" cannot be read: the cell ${JSON.stringify(this.#key)} is damaged. ` +
        "Files can be read; restore a backup to write again.",
    );
  }

  /** The counter for a change in the caller's transaction: one that begins a new version if a point stands at the last. */
  open(): Counter {
    const now = this.counter();
    if (now.newest < now.version) return now;
    this.#write({ ...now, version: now.version + 1 });
    if (now.version === 0) for (const { messageId, at } of this.#early) this.#put(messageId, at, 0);
    return this.counter();
  }

  /** All points, oldest first. */
  list(): WorkspacePoint[] {
    if (this.counter().version === 0) return [...this.#early];
    return listCells(this.#db, this.#prefix)
      .flatMap(({ key, value }) => toPoint(key.slice(this.#prefix.length), value) ?? [])
      .sort((a, b) => a.version - b.version || a.at - b.at || (a.messageId < b.messageId ? -1 : 1));
  }

  find(messageId: string): WorkspacePoint | undefined {
    const value = readCell(this.#db, this.#prefix + messageId);
    if (value !== undefined) return toPoint(messageId, value);
    return this.#early.length > 0 && this.counter().version === 0
      ? this.#early.find((point) => point.messageId === messageId)
      : undefined;
  }

  /** Makes a point of the last version. An older one of the same message is forgotten. @returns as {@link Versions.forget} */
  mark(messageId: string, at: number): string[] {
    if (typeof messageId !== "string" || messageId === "" || messageId.length > MAX_ID)
      throw new PerdureError("bad_input", `A point needs the id of a message: a text of 1 to ${MAX_ID} characters.`);
    const counter = this.counter();
    const { version } = counter;
    if (version === 0) {
      const others = this.#early.filter((point) => point.messageId !== messageId);
      this.#early = [...others, { messageId, version, at }].slice(-MAX_EARLY);
      return [];
    }
    this.#early = [];
    if (this.find(messageId) === undefined) {
      this.#put(messageId, at, version, counter);
      return [];
    }
    const freed = this.forget(messageId);
    this.#put(messageId, at, version);
    return freed;
  }

  #put(messageId: string, at: number, point: number, { version, newest, points } = this.counter()): void {
    writeCell(this.#db, this.#prefix + messageId, JSON.stringify([point, at]));
    this.#write({ version, newest: Math.max(newest, point), points: points + 1 });
  }

  /** Forgets a point, and the rows that only it needed. @returns the bodies that those referred to, one for each */
  forget(messageId: string): string[] {
    this.#early = this.#early.filter((early) => early.messageId !== messageId);
    const point = this.find(messageId);
    if (point === undefined) return [];
    deleteCell(this.#db, this.#prefix + messageId);
    const others = this.list().map(({ version }) => version);
    const { version, points } = this.counter();
    this.#write({ version, newest: others.at(-1) ?? 0, points: points - 1 });
    if (others.includes(point.version)) return [];
    const before = others.findLast((other) => other < point.version) ?? 0;
    const after = others.find((other) => other > point.version) ?? LIVE;
    return deleteFilesOf(this.#db, this.#ns, { before, point: point.version, after });
  }

  /** Forgets the oldest points when there are more than `max`. @returns as {@link Versions.forget} */
  trim(max: number): string[] {
    const counter = this.counter();
    if (counter.points <= max) return [];
    const points = this.list();
    const left = max - Math.floor(max / TRIMMED_PART);
    const gone = points.slice(0, Math.max(points.length - left, 0));
    const freed: string[] = [];
    for (const [at, { messageId, version }] of gone.entries()) {
      deleteCell(this.#db, this.#prefix + messageId);
      // Those before it are gone already.
      const after = points[at + 1]?.version ?? LIVE;
      if (after !== version) freed.push(...deleteFilesOf(this.#db, this.#ns, { before: 0, point: version, after }));
    }
    this.#write({ ...counter, points: points.length - gone.length });
    return freed;
  }

  /** Everything is forgotten; the rows are the caller's business. */
  clear(): void {
    this.#early = [];
    deleteCells(this.#db, this.#prefix);
    deleteCell(this.#db, this.#key);
  }

  #write(counter: Counter): void {
    writeCell(this.#db, this.#key, JSON.stringify(counter));
  }
}

/** Undefined for what is damaged: such a point is none. */
function toPoint(messageId: string, value: string): WorkspacePoint | undefined {
  const stored = tryParseJson(value);
  if (!Array.isArray(stored)) return undefined;
  const [version, at] = stored as unknown[];
  return isCount(version) && isCount(at) ? { messageId, version, at } : undefined;
}
