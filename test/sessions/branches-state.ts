// A run of the property test of branches: the agent, what it must be, and what was seen to be wrong.
import type { UIMessage } from "ai";
import { settle } from "../think/interleave-world.ts";
import { checkPrompt, checkStream } from "./branches-checks.ts";
import type { Client } from "./branches-client.ts";
import { Facts } from "./branches-facts.ts";
import { type Key, Oracle } from "./branches-oracle.ts";
import { World } from "./branches-world.ts";

/** A run: the agent, what it must be, and what was seen to be wrong. */
export class Run {
  readonly world: World;
  readonly oracle = new Oracle();
  readonly wrong: string[] = [];
  /** In which session each turn was asked for. */
  readonly turns = new Map<string, string>();
  /** A transaction was undone: answers may be missing, and errors were reported. */
  unsteady = false;
  /** The newest version of each message. */
  readonly versions = new Map<string, number>();

  /** What sessions showed when all was quiet, unless they were changed on purpose since; and the last turn then. */
  readonly untouched = new Map<string, string>();
  seen = 0;
  /** Clients are being put into other sessions. */
  moving = false;
  /** What to note once a request is seen to be stored. */
  readonly offers = new Map<string, () => void>();

  constructor(seed: number) {
    this.world = new World(seed);
    this.world.called = (call) => checkPrompt(this, call);
    for (const client of this.world.clients) client.heard = (turn) => checkStream(this, client, turn);
  }

  /** What has ended since stands where it belongs. */
  resolve(): void {
    const waiting = [...this.oracle.sessions.values()].filter(({ pending }) => pending.length > 0);
    if (waiting.length === 0) return;
    const open = new Set(openTurns(this.world).map(({ id }) => id));
    for (const session of waiting) this.oracle.resolve(session, this.isAnswered, (turn) => open.has(turn));
  }

  accept(turn: string): void {
    const note = this.offers.get(turn);
    this.offers.delete(turn);
    note?.();
  }

  sessionOf(client: Client): string {
    return client.named ?? this.oracle.current;
  }

  readonly isAnswered = (turn: string): boolean => new Facts(this.world).byKey.has(`a:${turn}`);
}

export function pick<T>(list: readonly T[], where: number): T | undefined {
  return list[Math.floor(where * list.length)];
}

/** Looks at what is stored: what the power went off over may be there or not. */
export async function committed(run: Run, look: () => void): Promise<void> {
  const { world } = run;
  if (!world.power.on) await world.restart();
  await world.wake();
  look();
}

/** A call that waits for a person. */
interface Question {
  readonly session: string;
  readonly toolCallId: string;
}

/** Those of the ends of all sessions. */
export function questions({ world, oracle }: Run): Question[] {
  const facts = new Facts(world);
  return [...oracle.sessions.keys()].flatMap((session) => {
    const body = facts.path(session).at(-1)?.body ?? "{}";
    const { parts = [] } = JSON.parse(body) as Partial<UIMessage>;
    return parts.flatMap((part) =>
      "toolCallId" in part && part.state === "approval-requested" ? { session, toolCallId: part.toolCallId } : [],
    );
  });
}

export function openTurns(world: World): { id: string; session: string; status: string }[] {
  return world.rows(
    "SELECT id, session, status FROM perdure_turn WHERE status IN ('held', 'accepted', 'running') ORDER BY seq",
  );
}

export function keyOfId({ world }: Run, id: string | undefined): Key | undefined {
  return new Facts(world).nodes.find((node) => node.id === id)?.key;
}

/** A client that is connected, or comes, and has read what it missed. */
export async function present(run: Run, where: number): Promise<Client> {
  const client = pick(run.world.clients, where) ?? run.world.clients[0];
  if (!client.connected) {
    if (client.named !== undefined && !run.oracle.sessions.has(client.named)) client.named = undefined;
    run.world.connect(client);
    await settle();
  }
  return client;
}
