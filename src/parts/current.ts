import { newId } from "../base/id.ts";
import type { Owner } from "../base/owner.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { isOpen, readTurn, type TurnRow } from "../store/turn.ts";
import type { PerdureError } from "../base/error.ts";
import type { FiberContext } from "../work/fiber-view.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentHost, AgentPath, AsyncContext } from "../port.ts";
import { readOnlyError, type Viewer } from "../door/authorize.ts";
import type { Connection } from "../door/connection.ts";
import { type OwnAgent, parts, type WaitingTurn } from "./part.ts";

/** Who is running now, and for whom. */
export interface Current<T = { readonly [parts]: OwnAgent }> {
  readonly agent: T | undefined;
  /** The connection whose frame is being handled. */
  readonly connection: Connection | undefined;
  /** The request being answered, or the one that opened the connection. */
  readonly request: Request | undefined;
  /** For whom: who sent the request or the frame; in a turn, who wrote the message that began it. */
  readonly identity?: Identity;
  /** The fiber that this runs in. */
  readonly fiber?: FiberContext;
  /** The turn that this runs in. */
  readonly turn?: string;
  /** Turns of other agents that wait for this, the first one first. */
  readonly waiting?: readonly WaitingTurn[];
}

/** Which turn something comes of that an agent asks for itself. */
export interface Cause {
  /** The agent where it began. */
  readonly root: AgentPath;
  /** The turn there. */
  readonly key: string;
  /** How many turns lie between, with the one that is asked for. */
  readonly depth: number;
  /** When it was asked for, in milliseconds since the epoch. */
  readonly at: number;
}

const viewer: unique symbol = Symbol("perdure.viewer");
const cause: unique symbol = Symbol("perdure.cause");

interface Carried extends Current {
  readonly [viewer]?: Viewer | undefined;
  readonly [cause]?: Cause | undefined;
}

/** What is carried for code outside turns that comes of one; nothing for other code. */
export function withCause(value: Cause | undefined): { readonly [cause]?: Cause } {
  return value === undefined ? {} : { [cause]: value };
}

/** What was carried along by {@link withCause}. */
export function causeCarried(): Cause | undefined {
  return (carrier?.get() as Carried | undefined)?.[cause];
}

/** Set by the first agent of the process; a host uses one context for all of its agents. */
let carrier: AsyncContext | undefined;

/** Tells where the current agent is carried. */
export function carryWith(context: AsyncContext): void {
  carrier = context;
}

const NOBODY: Current = { agent: undefined, connection: undefined, request: undefined };

/** The agent that the calling code runs for; see `getCurrentAgent`. */
export function currentAgent(): Current {
  return (carrier?.get() ?? NOBODY) as Current;
}

/** Runs `work` as what the caller runs as, but in no turn: for what goes on after the turn that began it, and comes of it. */
export function runOutsideTurn<T>(context: AsyncContext, of: Cause | undefined, work: () => T): T {
  const { turn: _, ...rest } = currentAgent();
  return context.run({ ...rest, ...withCause(of) }, work);
}

/** Runs `work` for an agent. Who could only read before can only read in it. */
export function runAs<T>(context: AsyncContext, current: Current, work: () => T): T {
  return runFor(context, current, (context.get() as Carried | undefined)?.[viewer], work);
}

/**
 * Runs `work` for an agent and for whoever asked. A viewer who may write at the start counts as none, since the work may outlive
 * that; one who may not is asked at each write.
 */
export function runFor<T>(context: AsyncContext, current: Current, who: Viewer | undefined, work: () => T): T {
  const isViewer = who?.isReadonly === true;
  const isOther = isViewer || viewer in current;
  return context.run(isOther ? { ...current, [viewer]: isViewer ? who : undefined } : current, work);
}

/** Why the code that runs now may not write; undefined when it may. */
export function writeRefusal(): PerdureError | undefined {
  const who = (carrier?.get() as Carried | undefined)?.[viewer];
  return who?.isReadonly === true ? readOnlyError(who) : undefined;
}

/** The turn of the agent that the calling code runs in. Code may go on after its turn: then it runs in none. */
export function turnNow(host: AgentHost): TurnRow | undefined {
  const row = turnCarried(host);
  return row !== undefined && isOpen(row) ? row : undefined;
}

/** The session of code that names none: of its turn, even if that has ended; else of the running turn, or the current one. */
export function sessionNow(chat: { readonly host: AgentHost; readonly session: string }): string {
  return turnCarried(chat.host)?.session ?? chat.session;
}

function turnCarried(host: AgentHost): TurnRow | undefined {
  const { agent, turn } = currentAgent();
  if (turn === undefined || agent?.[parts].host !== host || host.blank) return undefined;
  return readTurn(host, turn);
}

/** Deleted with the agent, so that the next one of its address is not taken for it. */
const OWNER_CELL = "owner";

/** The agent whose code runs, and the conversation that it runs for. */
export function ownerNow(): Owner | undefined {
  const { agent, turn } = currentAgent();
  if (agent === undefined) return undefined;
  const { host } = agent[parts];
  const session = host.blank ? undefined : agent[parts].turns?.sessionOf(turn);
  return {
    // Stored when something is kept for the agent, not when it is only looked at.
    get agent() {
      let mark = host.blank ? undefined : readCell(host, OWNER_CELL);
      if (mark === undefined) writeCell(host, OWNER_CELL, (mark = newId("owner")));
      return JSON.stringify([host.id, mark]);
    },
    session,
  };
}
