/**
 * Copies a value for another agent: plain objects, arrays, dates, maps, sets and bytes are copied, so that
 * neither side can change the other's data; functions, streams, signals, requests, responses and other
 * objects pass as they are. Hosts that cross machines serialise the same things.
 */
export function transfer<T>(value: T): T {
  return copy(value, new Map()) as T;
}

function copy(value: unknown, seen: Map<object, unknown>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    seen.set(value, list);
    for (const item of value) list.push(copy(item, seen));
    return list;
  }
  if (value instanceof Date) return new Date(value);
  if (value instanceof Uint8Array) return value.slice();
  if (value instanceof Map) {
    const map = new Map<unknown, unknown>();
    seen.set(value, map);
    for (const [key, item] of value) map.set(copy(key, seen), copy(item, seen));
    return map;
  }
  if (value instanceof Set) {
    const set = new Set<unknown>();
    seen.set(value, set);
    for (const item of value) set.add(copy(item, seen));
    return set;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const plain: Record<string, unknown> = {};
  seen.set(value, plain);
  // defineProperty: a key called __proto__ must stay a key.
  for (const [key, item] of Object.entries(value)) {
    Object.defineProperty(plain, key, {
      value: copy(item, seen),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return plain;
}
