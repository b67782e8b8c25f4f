// What the sessions of an agent must be: a tree in memory with names for leaves, which knows nothing of rows.

/** A message by what it says: `u3v0` is the third message in its first version, `a:r7` the answer of the turn r7. */
export type Key = string;

interface Node {
  readonly key: Key;
  parent: Key | null;
  owner: string;
}

/** A turn that was asked for and has not been seen to end, and the message that waits with it. */
interface Pending {
  readonly turn: string;
  readonly user?: Key;
}

export interface OracleSession {
  readonly id: string;
  readonly viewOf: string | undefined;
  leaf: Key | null;
  pending: Pending[];
  /** What was done to it depends on what ran at that moment: its place is read from the store, once all is quiet. */
  fuzzy: boolean;
}

export const MAIN = "main";

export class Oracle {
  readonly nodes = new Map<Key, Node>();
  readonly sessions = new Map<string, OracleSession>([
    [MAIN, { id: MAIN, viewOf: undefined, leaf: null, pending: [], fuzzy: false }],
  ]);
  current = MAIN;
  /** What was deleted is read from the store, once all is quiet. */
  unsure = false;

  of(id: string): OracleSession {
    const session = this.sessions.get(id);
    if (session === undefined) throw new Error(`The oracle knows no session ${id}.`);
    return session;
  }

  ownerOf(id: string): string {
    return this.of(id).viewOf ?? id;
  }

  /** Of a fuzzy session it may be nonsense, but it has an end. */
  path(leaf: Key | null): Key[] {
    const path = new Set<Key>();
    for (let at = leaf; at !== null && !path.has(at); at = this.nodes.get(at)?.parent ?? null) path.add(at);
    return [...path].reverse();
  }

  shown(id: string): Key[] {
    return this.path(this.of(id).leaf);
  }

  add(session: OracleSession, key: Key): void {
    this.nodes.set(key, { key, parent: session.leaf, owner: session.viewOf ?? session.id });
    session.leaf = key;
  }

  /** A message is sent: it stands behind what was said, and behind the answers that are yet to come. */
  sent(id: string, turn: string, user: Key): void {
    const session = this.of(id);
    if (session.pending.length === 0) {
      this.add(session, user);
      session.pending.push({ turn });
    } else session.pending.push({ turn, user });
  }

  /** Turns that have ended, up to the first that `isOpen`: that one is about to be answered. */
  resolve(session: OracleSession, isAnswered: (turn: string) => boolean, isOpen: (turn: string) => boolean): void {
    for (let next = session.pending[0]; next !== undefined; next = session.pending[0]) {
      if (next.user !== undefined) this.add(session, next.user);
      session.pending[0] = { turn: next.turn };
      if (isOpen(next.turn)) return;
      session.pending.shift();
      if (isAnswered(next.turn)) this.add(session, `a:${next.turn}`);
    }
  }

  /** A session is forgotten with all views of it: what was said in it goes, but for what others show. */
  forget(owner: string): void {
    const family = [...this.sessions.values()].filter(({ id, viewOf }) => (viewOf ?? id) === owner);
    this.unsure ||= [...this.sessions.values()].some((session) => session.fuzzy);
    for (const session of family) {
      this.resolve(
        session,
        () => false,
        () => false,
      );
    }
    for (const session of family) session.leaf = null;
    const heirs = new Map<Key, string>();
    const keep = (from: Key | null, heir: string) => {
      for (const key of this.path(from)) {
        const known = heirs.get(key);
        heirs.set(key, known === undefined || heir < known ? heir : known);
      }
    };
    for (const { id, viewOf, leaf } of this.sessions.values()) if ((viewOf ?? id) !== owner) keep(leaf, viewOf ?? id);
    for (const node of this.nodes.values()) if (node.owner !== owner) keep(node.parent, node.owner);
    for (const node of [...this.nodes.values()]) {
      if (node.owner !== owner) continue;
      const heir = heirs.get(node.key);
      if (heir === undefined) this.nodes.delete(node.key);
      else node.owner = heir;
    }
  }

  remove(owner: string): void {
    for (const { id, viewOf } of [...this.sessions.values()])
      if ((viewOf ?? id) === owner && id !== MAIN) this.sessions.delete(id);
  }
}
