import type { Work } from "../fiber/work.ts";
import type { Identity } from "../identity.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { Connection } from "./connection.ts";

/**
 * Something that a class adds to the agent underneath it (chat is one). Each member is asked in the order of the
 * features; none may be slow but `request` and `frame`.
 */
export interface Feature {
  /** What it has to do at a time. Asked only when the agent has rows. */
  readonly work?: Work;
  /** After `onStart`, before anything else is handled. What it throws fails the start. */
  started?(): void | Promise<void>;
  /** Whether a client may connect. If not, it has closed the connection, and nobody else hears of it. */
  admit?(connection: Connection): boolean | Promise<boolean>;
  /** Sends what a new connection must see first; it gets no broadcasts before this returns. */
  connecting?(connection: Connection): void;
  /** Takes a frame that the base agent does not handle. @returns false to leave it to `onMessage`. */
  frame?(connection: Connection, frame: ParsedFrame): boolean | Promise<boolean>;
  /**
   * Answers a request before `onRequest` does, or returns undefined. `rest` is the path behind the agent's address;
   * `identity` is who sent it, as far as is known.
   */
  request?(
    request: Request,
    rest: string,
    identity: Identity | undefined,
  ): Response | undefined | Promise<Response | undefined>;
  closed?(connection: Connection): void;
  /** What another agent is handed in the place of an object of this one's; undefined: a copy of it. */
  lend?(value: object): object | undefined;
  /** The host is about to stop: nothing new is begun, what runs may come to its end. */
  drain?(): void;
  /** This life ends now. */
  halt?(reason: unknown): void;
  /** This life has ended in order, with nothing under way: what is kept outside of the host is let go. Writes nothing. */
  left?(): void;
}
