import type { PerdureError } from "../base/error.ts";
import type { AboutFailure, AgentHost } from "../port.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { Ask, Caller, Refusal } from "../door/authorize.ts";
import type { Queue } from "../work/queue.ts";
import type { Work } from "../work/work.ts";
import type { Connection, Connections } from "../door/connection.ts";
import type { RouteTable } from "../door/routes.ts";
import type { OwnTurns } from "./runs/own-turns.ts";
import type { SubAgents } from "./children.ts";

/** Where the parts of an agent are. Under a symbol: every plain name belongs to those who extend the class. */
export const parts: unique symbol = Symbol("perdure.parts");

/** A turn that waits for what runs now. */
export interface WaitingTurn {
  /** The agent's whole address. */
  readonly agent: string;
  readonly turn: string;
}

/** The agent that a part belongs to, as its parts see it. */
export interface OwnAgent {
  readonly host: AgentHost;
  readonly connections: Connections;
  readonly children: SubAgents;
  readonly queue: Queue;
  /** The turns of the agent, where it takes any. */
  readonly turns: OwnTurns | undefined;
  /** Which turns of other agents wait for a turn of this one, by its id; see `circle.ts`. */
  readonly waiting: Map<string, readonly WaitingTurn[]>;
  /** This life is over: nothing may be written any more. */
  readonly halted: boolean;
  /** The conversation that somebody is in, if the agent holds any. */
  sessionOf(caller: Caller): string | undefined;
  /** Connections that want the framework's frames. */
  readers(): Iterable<Connection>;
  /** The method of the class as work calls it that nobody outside has asked for. */
  method(name: string): ((...args: unknown[]) => unknown) | undefined;
  /** Recomputes the alarm. */
  rearm(): void;
  /** Something failed that no caller need hear of: it is in the log, and the agent is told. Never rejects. */
  failed(error: unknown, about: AboutFailure, connection?: Connection): Promise<void>;
}

/** What a class adds to the agent below it, such as chat. Asked in order; only `frame` and answers of `routes` may be slow. */
export interface AgentPart {
  /** What it has to do at a time. Asked only when the agent has rows. */
  readonly work?: Work;
  /** After `onStart`, before anything else is handled. What it throws fails the start. */
  started?(): void | Promise<void>;
  /** Its own rule about who may do what, asked before the app's. Undefined: it may be done. Must not throw. */
  consents?(caller: Caller, ask: Ask): Refusal | Promise<Refusal>;
  /** The conversation that somebody is in. */
  sessionOf?(caller: Caller): string | undefined;
  /** Sends what a new connection must see first; it gets no broadcasts before this returns. */
  connecting?(connection: Connection): void;
  /** A connection has gone to another conversation, and was told of it. */
  moved?(connection: Connection): void;
  /** The kinds of frames that it takes; the others are left to `onMessage`. */
  readonly kinds?: ReadonlySet<ParsedFrame["kind"]>;
  /** Takes a frame that may be taken. */
  frame?(connection: Connection, frame: ParsedFrame): void | Promise<void>;
  /** Tells whoever sent a frame that it was not taken, in the frame that it waits for. */
  refuse?(connection: Connection, frame: ParsedFrame, error: PerdureError): void;
  /** What it answers by HTTP, before `onRequest` does. */
  readonly routes?: RouteTable;
  closed?(connection: Connection): void;
  /** What another agent is handed in the place of an object of this one's; undefined: a copy of it. */
  lend?(value: object): object | undefined;
  /** The host is about to stop: nothing new is begun, what runs may come to its end. */
  drain?(): void;
  /** This life ends now. */
  halt?(reason: unknown): void;
  /** This life has ended in order, with nothing under way: lets go of what is kept outside the host. Writes nothing. */
  left?(): void;
}
