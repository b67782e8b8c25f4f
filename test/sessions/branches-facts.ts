// What the sessions of an agent are, as its rows tell.
import { type Key, MAIN } from "./branches-oracle.ts";
import type { World } from "./branches-world.ts";

export interface StoredNode {
  readonly seq: number;
  readonly id: string;
  readonly key: Key;
  readonly parent: number | null;
  readonly session: string;
  readonly role: string;
  readonly body: string;
}

export interface StoredSession {
  readonly id: string;
  readonly leaf: number | null;
  readonly viewOf: string | null;
  readonly forkAt: number | null;
  readonly current: number;
}

export class Facts {
  readonly nodes: readonly StoredNode[];
  readonly bySeq: ReadonlyMap<number, StoredNode>;
  readonly byKey: ReadonlyMap<Key, StoredNode>;
  readonly sessions: ReadonlyMap<string, StoredSession>;

  /** The agent must be awake. */
  constructor(world: World) {
    const turns = world.rows<{ id: string; answer: string }>(
      "SELECT id, answer_id AS answer FROM perdure_turn WHERE continuation = 0 AND answer_id IS NOT NULL",
    );
    const answers = new Map(turns.map(({ id, answer }) => [answer, `a:${id}`]));
    this.nodes = world
      .rows<Omit<StoredNode, "key">>("SELECT seq, id, parent, session, role, body FROM perdure_message ORDER BY seq")
      .map((row) => ({ ...row, key: keyIn(row.role, row.body) ?? answers.get(row.id) ?? `?${row.id}` }));
    this.bySeq = new Map(this.nodes.map((node) => [node.seq, node]));
    this.byKey = new Map(this.nodes.map((node) => [node.key, node]));
    const sessions = world.rows<StoredSession>(
      "SELECT id, leaf, view_of AS viewOf, fork_at AS forkAt, current FROM perdure_session ORDER BY id",
    );
    this.sessions = new Map(sessions.map((session) => [session.id, session]));
  }

  get current(): string {
    return [...this.sessions.values()].find(({ current }) => current === 1)?.id ?? MAIN;
  }

  /** From the first message to the leaf of a session. */
  path(session: string): StoredNode[] {
    const path: StoredNode[] = [];
    let at = this.sessions.get(session)?.leaf ?? null;
    while (at !== null && path.length <= this.nodes.length) {
      const node = this.bySeq.get(at);
      if (node === undefined) break;
      path.push(node);
      at = node.parent;
    }
    return path.reverse();
  }

  /** What a branch that is chosen ends with: always what was said last in the session, or where it was forked. */
  newestUnder(seq: number, owner: string): number {
    const under = (at: number): number => {
      const next = this.nodes.findLast((node) => node.parent === at && node.session === owner);
      return next === undefined ? at : under(next.seq);
    };
    const leaf = under(seq);
    const forkAt = this.sessions.get(owner)?.forkAt ?? null;
    let at = forkAt;
    while (at !== null && at !== leaf) at = this.bySeq.get(at)?.parent ?? null;
    return at === null || forkAt === null ? leaf : under(forkAt);
  }

  /** What no tree may have. */
  broken(): string[] {
    const wrong: string[] = [];
    if (this.byKey.size !== this.nodes.length)
      wrong.push(`a message is there twice: ${this.nodes.map((n) => n.key).join(" ")}`);
    for (const { key, parent } of this.nodes)
      if (parent !== null && !this.bySeq.has(parent)) wrong.push(`${key} stands behind nothing`);
    for (const { id, leaf } of this.sessions.values())
      if (leaf !== null && !this.bySeq.has(leaf)) wrong.push(`the session ${id} ends with nothing`);
    for (const { key, session } of this.nodes)
      if (session !== MAIN && this.sessions.get(session)?.viewOf !== null) wrong.push(`${key} belongs to ${session}`);
    for (const node of this.nodes) {
      let at: StoredNode | undefined = node;
      for (let i = 0; at !== undefined && at.parent !== null; i++) {
        if (i > this.nodes.length) return [...wrong, `there is no way up from ${node.key}`];
        at = this.bySeq.get(at.parent);
      }
    }
    return wrong;
  }
}

/** What a message is known by. An answer may hold the words of messages that it took in. */
export function keyIn(role: string, text: string): Key | undefined {
  return (role === "user" ? /\[(u\d+v\d+)\]/ : /\[(a:[^\]]+)\]/).exec(text)?.[1];
}
