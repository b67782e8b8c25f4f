import { errorText, PerdureError } from "../base/error.ts";
import type { HostedAgent } from "../port.ts";

/**
 * Copies a value for another agent: plain objects (symbol keys too), arrays, dates, maps, sets and bytes, so that neither side
 * can change the other's; functions, streams, signals, requests, responses and other objects pass as they are. Hosts that cross
 * machines serialise the same things.
 * @param giver whose value it is: it may give something in the place of an object
 * @throws PerdureError `bad_input` for a property that cannot be read, `limit` for what is nested too deep
 */
export function transfer<T>(value: T, giver?: Pick<HostedAgent, "lend">): T {
  try {
    return copy(value, { giver, seen: new Map() }) as T;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new PerdureError("limit", "A value passed to another agent is nested too deeply. Pass something flatter.");
  }
}

/** In longer lists only symbol keys are looked for: finding others takes longer than the copy, and lists with names are short. */
const MAX_NAMED_LENGTH = 1_000;

interface Transfer {
  readonly giver: Pick<HostedAgent, "lend"> | undefined;
  readonly seen: Map<object, unknown>;
}

function copy(value: unknown, transfer: Transfer): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { seen } = transfer;
  const known = seen.get(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    seen.set(value, list);
    for (const item of value) list.push(copy(item, transfer));
    return withKeys(list, value, namesIn(value), transfer);
  }
  if (value instanceof Date) return new Date(value);
  // Not by its own method: that of a Buffer hands out the same bytes.
  if (value instanceof Uint8Array) return Uint8Array.prototype.slice.call(value);
  if (value instanceof Map) {
    const map = new Map<unknown, unknown>();
    seen.set(value, map);
    for (const [key, item] of value) map.set(copy(key, transfer), copy(item, transfer));
    return map;
  }
  if (value instanceof Set) {
    const set = new Set<unknown>();
    seen.set(value, set);
    for (const item of value) set.add(copy(item, transfer));
    return set;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const plain = Object.create(prototype) as object;
  seen.set(value, plain);
  const given = transfer.giver?.lend?.(value) ?? value;
  return withKeys(plain, given, Reflect.ownKeys(given), transfer);
}

/** The keys of a list that are no places in it. */
function namesIn(list: readonly unknown[]): (string | symbol)[] {
  if (list.length > MAX_NAMED_LENGTH) return Object.getOwnPropertySymbols(list);
  const keys = Reflect.ownKeys(list);
  // Places come before the length, names behind it.
  return keys.slice(keys.lastIndexOf("length") + 1);
}

/** Copies these keys. What is computed is computed now: the value passes, not the way to it. */
function withKeys(to: object, from: object, keys: readonly (string | symbol)[], transfer: Transfer): object {
  for (const key of keys) {
    const { enumerable = false } = Object.getOwnPropertyDescriptor(from, key) ?? {};
    const value = copy(read(from, key), transfer);
    // A key called __proto__ must stay a key.
    Object.defineProperty(to, key, { value, enumerable, writable: true, configurable: true });
  }
  return to;
}

function read(from: object, key: string | symbol): unknown {
  try {
    return Reflect.get(from, key) as unknown;
  } catch (thrown) {
    throw new PerdureError(
      "bad_input",
      `The property ${String(key)} cannot be passed to another agent, because it cannot be read: ${errorText(thrown)}.`,
      { cause: thrown },
    );
  }
}
