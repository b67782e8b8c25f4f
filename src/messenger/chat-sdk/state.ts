import { newId } from "../../base/id.ts";
import type { StateCall } from "../kept-state.ts";

/** What an adapter holds while it has a lock. */
// A type, and not an interface: what this file returns is named in declarations elsewhere.
type Lock = {
  readonly threadId: string;
  readonly token: string;
  readonly expiresAt: number;
};

/**
 * Names under which adapters note what they were told before acting on it. Our stored rows know that, so these notes are dropped
 * at once and redeliveries come through.
 */
const FORGOTTEN = [/^[^:]+:webhook-update:/, /^slack:event-delivered:/];
const isForgotten = (key: string) => FORGOTTEN.some((pattern) => pattern.test(key));

/** What the SDK calls a state adapter, over what the agent keeps. @param ask who keeps this key */
export function chatSdkState(ask: (key: string) => StateCall) {
  const lockOf = (threadId: string) => `lock:${threadId}`;
  const queueOf = (threadId: string) => `queue:${threadId}`;
  const subscriptionOf = (threadId: string) => `subscribed:${threadId}`;
  const get = async (key: string): Promise<unknown> => (isForgotten(key) ? null : ask(key)({ op: "get", key }));
  const set = async (key: string, value: unknown, ttlMs?: number, absent?: true): Promise<boolean> => {
    if (isForgotten(key)) return true;
    const written = await ask(key)({
      ...{ op: "set", key, value },
      ...(ttlMs !== undefined && { ttlMs }),
      ...(absent !== undefined && { absent }),
    });
    return written === true;
  };
  const remove = async (key: string, value?: string): Promise<void> => {
    await ask(key)({ op: "delete", key, ...(value !== undefined && { value }) });
  };
  const list = async (key: string): Promise<unknown[]> => {
    const found = await get(key);
    return Array.isArray(found) ? (found as unknown[]) : [];
  };
  const append = async (key: string, value: unknown, max?: number, ttlMs?: number): Promise<number> =>
    Number(
      await ask(key)({
        ...{ op: "append", key, value },
        ...(max !== undefined && { max }),
        ...(ttlMs !== undefined && { ttlMs }),
      }),
    );
  return {
    connect: () => Promise.resolve(),
    disconnect: () => Promise.resolve(),
    get,
    async set(key: string, value: unknown, ttlMs?: number): Promise<void> {
      await set(key, value, ttlMs);
    },
    setIfNotExists: (key: string, value: unknown, ttlMs?: number) => set(key, value, ttlMs, true),
    delete: (key: string) => remove(key),
    getList: list,
    async appendToList(
      key: string,
      value: unknown,
      options: { maxLength?: number; ttlMs?: number } = {},
    ): Promise<void> {
      await append(key, value, options.maxLength, options.ttlMs);
    },
    async acquireLock(threadId: string, ttlMs: number): Promise<Lock | null> {
      const token = newId("msg");
      const expiresAt = Date.now() + ttlMs;
      return (await set(lockOf(threadId), token, ttlMs, true)) ? { threadId, token, expiresAt } : null;
    },
    async extendLock({ threadId, token }: Lock, ttlMs: number): Promise<boolean> {
      const key = lockOf(threadId);
      return (await ask(key)({ op: "extend", key, value: token, ttlMs })) === true;
    },
    releaseLock: ({ threadId, token }: Lock) => remove(lockOf(threadId), token),
    forceReleaseLock: (threadId: string) => remove(lockOf(threadId)),
    enqueue: (threadId: string, entry: unknown, maxSize: number) => append(queueOf(threadId), entry, maxSize),
    dequeue: (threadId: string) => ask(queueOf(threadId))({ op: "shift", key: queueOf(threadId) }),
    queueDepth: async (threadId: string) => (await list(queueOf(threadId))).length,
    async subscribe(threadId: string): Promise<void> {
      await set(subscriptionOf(threadId), true);
    },
    unsubscribe: (threadId: string) => remove(subscriptionOf(threadId)),
    isSubscribed: async (threadId: string) => (await get(subscriptionOf(threadId))) === true,
  };
}
