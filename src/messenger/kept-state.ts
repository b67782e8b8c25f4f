import { tryParseJson } from "../base/json.ts";
import type { AgentHost } from "../port.ts";
import {
  deleteMessengerState,
  readMessengerState,
  trimMessengerState,
  writeMessengerState,
} from "../store/messenger-state.ts";

/** What is asked of kept state. Plain data: it may be asked of another agent. Values are JSON; a `ttlMs` counts from now. */
export type StateOp =
  /** @returns the value, or null */
  | { readonly op: "get"; readonly key: string }
  /** `absent`: only where nothing is. @returns whether it was written */
  | {
      readonly op: "set";
      readonly key: string;
      readonly value: unknown;
      readonly ttlMs?: number;
      readonly absent?: true;
    }
  /** Lets a value live on from now, if it is still this one. @returns whether it was */
  | { readonly op: "extend"; readonly key: string; readonly value: string; readonly ttlMs: number }
  /** `value`: only if it is still this one. */
  | { readonly op: "delete"; readonly key: string; readonly value?: string }
  /** Adds to the end of a list, of which the newest `max` stay. @returns how many there are */
  | {
      readonly op: "append";
      readonly key: string;
      readonly value: unknown;
      readonly max?: number;
      readonly ttlMs?: number;
    }
  /** Takes the first of a list. @returns it, or null */
  | { readonly op: "shift"; readonly key: string };

/** Asks for what is kept. Each call is whole: nothing happens between its reading and its writing. */
export type StateCall = (op: StateOp) => Promise<unknown>;

/** After how many writes what has expired is looked for. */
const TRIM_EVERY = 200;
const writes = new WeakMap<object, number>();

/** Answers a {@link StateOp} from the rows of this agent. */
export function runState(
  host: Pick<AgentHost, "sql" | "tx" | "blank" | "clock">,
  messenger: string,
  op: StateOp,
): unknown {
  const now = host.clock.now();
  const { key } = op;
  const read = (): unknown => {
    const row = host.blank ? undefined : readMessengerState(host, messenger, key, now);
    return row === undefined ? null : (tryParseJson(row.value) ?? null);
  };
  const write = (value: unknown, ttlMs: number | undefined): void => {
    const json = JSON.stringify(value ?? null);
    writeMessengerState(host, { messenger, key, value: json, expiresAt: ttlMs === undefined ? null : now + ttlMs });
    const count = (writes.get(host) ?? 0) + 1;
    writes.set(host, count);
    if (count % TRIM_EVERY === 0) trimMessengerState(host, now);
  };
  if (op.op === "get") return read();
  return host.tx(() => {
    const before = read();
    const list = Array.isArray(before) ? (before as unknown[]) : [];
    switch (op.op) {
      case "set":
        if (op.absent === true && before !== null) return false;
        write(op.value, op.ttlMs);
        return true;
      case "extend":
        if (before !== op.value) return false;
        write(op.value, op.ttlMs);
        return true;
      case "delete":
        if (before !== null && (op.value === undefined || before === op.value))
          deleteMessengerState(host, messenger, key);
        return null;
      case "append": {
        const grown = [...list, op.value];
        const kept = op.max === undefined ? grown : grown.slice(-op.max);
        write(kept, op.ttlMs);
        return kept.length;
      }
      case "shift": {
        const [first = null, ...rest] = list;
        if (rest.length > 0) write(rest, undefined);
        else if (before !== null) deleteMessengerState(host, messenger, key);
        return first;
      }
    }
  });
}
