import type { ChatHandlers } from "./chat-types.ts";

type Told = "onData" | "onError" | "onFinish" | "onTurnEnd";

/** Those who show a chat, and those who listen to it. */
export class ChatAudience {
  readonly #listeners = new Set<(urgent: boolean) => void>();
  readonly #handlers = new Set<() => ChatHandlers>();

  add(listener: (urgent: boolean) => void, handlers: (() => ChatHandlers) | undefined): () => void {
    this.#listeners.add(listener);
    if (handlers !== undefined) this.#handlers.add(handlers);
    return () => {
      this.#listeners.delete(listener);
      if (handlers !== undefined) this.#handlers.delete(handlers);
    };
  }

  /** Something to show has changed. */
  changed(urgent: boolean): void {
    for (const listener of this.#listeners) listener(urgent);
  }

  tell<K extends Told>(name: K, value: Parameters<NonNullable<ChatHandlers[K]>>[0]): void {
    for (const handlers of this.handlers()) (handlers[name] as ((value: unknown) => void) | undefined)?.(value);
  }

  /** As they are now. */
  *handlers(): Generator<ChatHandlers> {
    for (const handlers of this.#handlers) yield handlers();
  }
}
