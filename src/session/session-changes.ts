import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { deleteCell } from "../store/cell.ts";
import { type MessageRow, placesUp, readMessage } from "../store/message.ts";
import {
  currentSession,
  deleteSessionRow,
  insertSession,
  listSessionLines,
  MAIN_SESSION,
  readSession,
  readSessionLine,
  type SessionLine,
  setCurrent,
  setName,
  viewsOf,
} from "../store/session.ts";
import type { NamedBy, SessionInfo } from "../wire/session-types.ts";
import { deleteChunksOf } from "../store/stream.ts";
import { deleteTurnsOf, messageIdsOf, openTurns, turnsBehind } from "../store/turn.ts";
import { copyContext, deleteContext } from "../memory/lifecycle.ts";
import type { Sql } from "../port.ts";
import type { SessionGround } from "./session-ground.ts";
import { hasMessage, newestLeafIn } from "./siblings.ts";
import { titleTriesKey } from "./titles.ts";
import type { SessionStore } from "../store/session-store.ts";

/** How a session is to be made. */
export interface NewSessionOptions {
  /** Default: taken from the first message. */
  readonly name?: string;
  /** Whose data it holds: {@link erase} can delete all sessions of one subject. Not shown to the model. */
  readonly subject?: string;
  /** Letters, digits, `_`, `-` and `.`. Default: a random one. */
  readonly id?: string;
}

/** How a session is to be forked. */
export interface ForkOptions extends NewSessionOptions {
  /** The fork ends with this message. Default: with what was said last. */
  readonly at?: string;
}

/** The longest name of a session. */
const MAX_SESSION_NAME = 200;
/** What an id may look like: it stands in URLs and in names of cells. */
const SESSION_ID = /^[\w.-]{1,128}$/;
/** How many views a session may have. Beyond that the one goes that was not used for the longest time. */
export const MAX_VIEWS = 100;

/** The row of a session. @throws PerdureError `not_found` */
export function findSession(ground: Pick<SessionGround, "store">, id: string): SessionLine {
  const row = ground.store.blank ? undefined : readSessionLine(ground.store, id);
  if (row !== undefined) return row;
  if (id !== MAIN_SESSION) throw noSession(id);
  // The first one is there from the beginning; its row is made when it is needed.
  const none = { name: null, namedBy: null, leaf: null, parent: null, forkAt: null, viewOf: null, subject: null };
  const isCurrent = ground.store.blank || currentSession(ground.store) === MAIN_SESSION;
  const now = ground.store.clock.now();
  return { id, ...none, current: isCurrent ? 1 : 0, createdAt: now, updatedAt: now };
}

/** Whether there is such a session, or a view. The first one is always there. */
export function hasSession(store: SessionStore, id: string): boolean {
  return id === MAIN_SESSION || (!store.blank && readSessionLine(store, id) !== undefined);
}

/** The error for a session that is not there. */
export function noSession(id: string): PerdureError {
  return new PerdureError("not_found", `There is no session "${id}". Create it, or use one from the list.`);
}

/** A message that a session shows, or that was said in it. @throws PerdureError `not_found` */
export function findMessage(ground: Pick<SessionGround, "store">, session: SessionLine, messageId: string): MessageRow {
  const row = ground.store.blank ? undefined : readMessage(ground.store, messageId);
  if (row !== undefined && hasMessage(ground.store, session, row)) return row;
  throw new PerdureError("not_found", `There is no message "${messageId}" in the session "${session.id}".`);
}

/** A row as it is shown. */
export function infoOf({ store, transcripts }: SessionGround, row: SessionLine): SessionInfo {
  const { id, name, namedBy, parent, subject, viewOf, createdAt, updatedAt } = row;
  const forkedAt = row.forkAt === null ? null : (placesUp(store, row.forkAt, 1)[0]?.id ?? null);
  const current = transcripts.current === id;
  return { id, name, namedBy, current, parent, forkedAt, subject, viewOf, createdAt, updatedAt };
}

/** @returns its id. @throws PerdureError `conflict`, `bad_input` */
export function createSession(ground: SessionGround, options: NewSessionOptions = {}): string {
  const id = checkNew(ground, options);
  const { subject = null } = options;
  ground.commit(() => insertSession(ground.store, { id, ...named(options.name), subject }, ground.store.clock.now()));
  ground.store.emit("session:created", { session: id });
  ground.told({ kind: "created", session: id });
  return id;
}

/**
 * Forks a session at a message, at the same cost for any length: both stand in one tree, with the same ids, compactions and pins.
 * @returns its id. @throws PerdureError `not_found`, `conflict`, `bad_input`
 */
export function forkSession(ground: SessionGround, from: string, options: ForkOptions = {}): string {
  const source = findSession(ground, from);
  const id = checkNew(ground, options);
  const leaf = options.at === undefined ? settledEnd(ground, source.leaf) : findMessage(ground, source, options.at).seq;
  const parent = source.viewOf ?? source.id;
  const owner = readSession(ground.store, parent);
  ground.commit(() => {
    const inherited = { name: owner?.name ?? null, namedBy: owner?.namedBy === "user" ? "derived" : owner?.namedBy };
    const body = { body: owner?.body ?? null, clientTools: owner?.clientTools ?? null };
    const subject = options.subject ?? owner?.subject ?? null;
    const name = options.name === undefined ? inherited : named(options.name);
    insertSession(
      ground.store,
      { id, ...body, ...name, leaf, parent, forkAt: leaf, subject },
      ground.store.clock.now(),
    );
    copyContext(ground.store, parent, id);
  });
  // What a limit may delete has changed: this one shows it too.
  ground.transcripts.reload();
  ground.store.emit("session:created", { session: id, parent });
  ground.told({ kind: "created", session: id });
  return id;
}

/** Gives a session a name that nothing but another one of a person replaces. @throws PerdureError */
export function renameSession(ground: SessionGround, id: string, name: string, by: NamedBy = "user"): void {
  const session = ownerOf(ground, id);
  const text = checkName(name);
  ground.commit(() => {
    ensureRow(ground, session);
    setName(ground.store, session, text, by, ground.store.clock.now());
  });
  ground.store.emit("session:renamed", { session, name: text, by });
  ground.told({ kind: "renamed", session });
}

/** Makes a session the current one. @throws PerdureError `not_found` */
export function switchSession(ground: SessionGround, id: string): void {
  const { viewOf } = findSession(ground, id);
  if (viewOf !== null) throw new PerdureError("bad_input", `"${id}" is a view of "${viewOf}". Switch to that.`);
  const from = ground.transcripts.current;
  if (from === id) return;
  ground.commit(() => {
    ensureRow(ground, id);
    setCurrent(ground.store, id);
  });
  ground.transcripts.reload();
  ground.store.emit("session:switched", { session: id });
  ground.told({ kind: "switched", session: id, from });
}

/** Deletes what was said in a session, but for what others show. Its name and its context blocks stay. */
export function clearSession(ground: SessionGround, id: string): void {
  const session = ownerOf(ground, id);
  ground.forget(session);
  ground.told({ kind: "changed", session });
}

/** Deletes a session and its messages, but for those that others show. The last one used becomes current. */
export function deleteSession(ground: SessionGround, id: string): boolean {
  const { store } = ground;
  const row = store.blank ? undefined : readSessionLine(store, id);
  if (row === undefined) return false;
  if (row.viewOf !== null) return closeView(ground, id);
  const wasCurrent = ground.transcripts.current === id;
  ground.forget(id, () => {
    for (const view of viewsOf(store, id)) deleteSessionRow(store, view.id);
    deleteContext(store, id);
    deleteCell(store, titleTriesKey(id));
    deleteSessionRow(store, id);
    const next = wasCurrent ? listSessionLines(store, 1)[0]?.id : undefined;
    if (next !== undefined) setCurrent(store, next);
  });
  ground.transcripts.forget(id);
  store.emit("session:deleted", { session: id });
  ground.told({ kind: "deleted", session: id });
  if (wasCurrent) ground.told({ kind: "switched", session: ground.transcripts.current, from: id });
  return true;
}

/** The session that a view is of; of another session, itself. @throws PerdureError `not_found` */
export function ownerOf(ground: SessionGround, id: string): string {
  return findSession(ground, id).viewOf ?? id;
}

/**
 * Makes a view of a session: its own place in the same tree, for one client that looks at another branch. What is said there is
 * said in the session. It is not listed, and ends with {@link closeView}, with its session, or when there are too many; not while
 * a turn of it is under way.
 * @param at it ends with the newest message under this one. Default: where the session ends.
 * @returns its id. @throws PerdureError `not_found`
 */
export function openView(ground: SessionGround, session: string, at?: string): string {
  const { store } = ground;
  const source = findSession(ground, session);
  const owner = source.viewOf ?? source.id;
  const top = at === undefined ? undefined : findMessage(ground, source, at).seq;
  const leaf = settledEnd(ground, top === undefined ? source.leaf : newestLeafIn(store, source, top), top);
  const id = newId("view");
  const gone: string[] = [];
  ground.commit(() => {
    // For the first session: its row may not be there yet.
    if (owner === MAIN_SESSION) insertSession(store, { id: owner }, store.clock.now());
    insertSession(store, { id, leaf, viewOf: owner }, store.clock.now());
    const views = viewsOf(store, owner).filter((view) => view.id !== id);
    if (views.length < MAX_VIEWS) return;
    const busy = new Set(openTurns(store).map((turn) => turn.session));
    for (const view of views.slice(MAX_VIEWS - 1)) {
      if (busy.has(view.id)) continue;
      deleteView(ground, view.id);
      gone.push(view.id);
    }
  });
  // What a limit may delete has changed: this one shows it too.
  ground.transcripts.reload();
  for (const view of gone) {
    ground.transcripts.forget(view);
    ground.told({ kind: "deleted", session: view });
  }
  return id;
}

/** Deletes the row of a view, and how its turns ended, in the caller's transaction. */
function deleteView({ store }: SessionGround, id: string): void {
  deleteTurnsOf(store, id, store.clock.now());
  deleteChunksOf(store, id);
  deleteSessionRow(store, id);
}

/** Ends a view; what was said there stays as a branch. @returns whether there was one. @throws PerdureError `bad_state` */
export function closeView(ground: SessionGround, id: string): boolean {
  const row = ground.store.blank ? undefined : readSessionLine(ground.store, id);
  if (row === undefined || row.viewOf === null) return false;
  refuseDuringTurns(ground.store, id);
  ground.commit(() => deleteView(ground, id));
  ground.transcripts.forget(id);
  ground.told({ kind: "deleted", session: id });
  return true;
}

/** Refuses to move the end of a session on which a turn works. @throws PerdureError `bad_state` */
export function refuseDuringTurns(db: Sql, session: string): void {
  if (!openTurns(db).some((turn) => turn.session === session)) return;
  throw new PerdureError(
    "bad_state",
    `A turn of the session "${session}" is running or waiting. Stop it, wait for it, or open a view.`,
  );
}

/** How far up it is looked: only what waits stands behind an answer that is being written. */
const OPEN_DISTANCE = 200;

/**
 * The last message up from `leaf`, no further than `top`, that stays as and where it is: not an answer being written by any
 * session's turn, nor what waits for its own turn, since answers are yet to be put in front of it.
 */
export function settledEnd(ground: SessionGround, leaf: number | null, top?: number): number | null {
  const { store } = ground;
  const open = Map.groupBy(openTurns(store), (turn) => turn.session);
  if (leaf === null || open.size === 0) return leaf;
  const moves = new Set<string>();
  for (const [session, [first]] of open) {
    const own = new Set(idsOf(first));
    // Also what waited until it was stopped.
    const others = first === undefined ? [] : turnsBehind(store, first);
    for (const id of others.flatMap(idsOf)) if (!own.has(id)) moves.add(id);
    const writing = ground.answering(session);
    if (writing !== undefined) moves.add(writing);
  }
  const way = placesUp(store, leaf, OPEN_DISTANCE);
  const end = top === undefined ? way.length : way.findIndex(({ seq }) => seq === top);
  const last = way.slice(0, end === -1 ? way.length : end).findLast(({ id }) => moves.has(id));
  return last === undefined ? leaf : last.parent;
}

function idsOf(turn: { readonly messageIds: string } | undefined): string[] {
  return turn === undefined ? [] : messageIdsOf(turn);
}

function ensureRow({ store }: SessionGround, id: string): void {
  if (id === MAIN_SESSION) insertSession(store, { id }, store.clock.now());
}

function checkNew({ store }: SessionGround, { id = newId("session"), name, subject }: NewSessionOptions): string {
  if (!SESSION_ID.test(id)) {
    throw new PerdureError(
      "bad_input",
      `"${id}" cannot be the id of a session: up to 128 letters, digits, "_", "-" and ".".`,
    );
  }
  if (name !== undefined) checkName(name);
  if (subject !== undefined && (typeof subject !== "string" || subject === ""))
    throw new PerdureError("bad_input", "The subject of a session must be a non-empty string.");
  if (hasSession(store, id))
    throw new PerdureError("conflict", `The session "${id}" already exists. Choose another id.`);
  return id;
}

function named(name: string | undefined): { name?: string; namedBy?: NamedBy } {
  return name === undefined ? {} : { name: checkName(name), namedBy: "user" };
}

function checkName(name: string): string {
  const text = typeof name === "string" ? name.replace(/\s+/g, " ").trim() : "";
  if (text === "" || text.length > MAX_SESSION_NAME)
    throw new PerdureError(
      "bad_input",
      `The name of a session must be a string of 1 to ${MAX_SESSION_NAME} characters.`,
    );
  return text;
}
