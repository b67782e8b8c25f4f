import type { UIMessage } from "../message/types.ts";

interface Entry {
  readonly promise: Promise<void>;
  result: { readonly messages: UIMessage[] } | { readonly error: unknown } | undefined;
}

/**
 * Loads that components wait for. A component that waits is forgotten and made anew, so what it waits for must be
 * kept outside of it; once there is a chat with the messages, it is dropped.
 */
const loads = new Map<string, Entry>();

/** How long a load that failed is not tried again. */
const FAILURE_MS = 500;

/**
 * The messages of `key`, loaded once for all who ask. Throws the promise that React waits for, and later what the
 * load failed with.
 */
export function loadMessages(key: string, load: () => Promise<UIMessage[]>): UIMessage[] {
  let entry = loads.get(key);
  if (entry === undefined) {
    const made: Entry = {
      promise: load().then(
        (messages) => void (made.result = { messages }),
        (error: unknown) => {
          made.result = { error };
          // Drawn again at once, it must fail again; later, whoever draws it anew wants another try.
          setTimeout(() => forget(key, made), FAILURE_MS);
        },
      ),
      result: undefined,
    };
    entry = made;
    loads.set(key, entry);
  }
  const { result, promise } = entry;
  // How a component tells React to wait.
  if (result === undefined) throw promise;
  if ("messages" in result) return result.messages;
  throw result.error;
}

function forget(key: string, entry: Entry): void {
  if (loads.get(key) === entry) loads.delete(key);
}

/** The messages are in use: who comes later loads them anew. */
export function forgetLoad(key: string): void {
  loads.delete(key);
}
