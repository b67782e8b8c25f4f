import type { MessagePort } from "node:worker_threads";
import type { Call } from "../protocol.ts";

/** The worker's end of the line to its host: asks, and waits for the answer. */
export interface HostLink {
  /** @throws Error with the host's message */
  ask(run: number, call: Call): Promise<unknown>;
  answer(message: { readonly call: number; readonly value?: unknown; readonly error?: string }): void;
}

export function createHostLink(port: MessagePort): HostLink {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let calls = 0;
  return {
    ask(run, ask) {
      const call = calls++;
      return new Promise((resolve, reject) => {
        waiting.set(call, { resolve, reject });
        port.postMessage({ type: "call", run, call, ask });
      });
    },
    answer({ call, value, error }) {
      const open = waiting.get(call);
      waiting.delete(call);
      if (error === undefined) open?.resolve(value);
      else open?.reject(new Error(error));
    },
  };
}
