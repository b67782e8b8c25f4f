/** Reads what this browser keeps. Undefined when it keeps nothing, or may not. */
export function readSaved(storage: () => Storage, key: string): string | undefined {
  try {
    return storage().getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a value, or forgets it. Does nothing where the browser does not allow it. */
export function save(storage: () => Storage, key: string, value: string | undefined): void {
  try {
    if (value === undefined) storage().removeItem(key);
    else storage().setItem(key, value);
  } catch {
    // A private window, or no room: it is only a convenience.
  }
}
