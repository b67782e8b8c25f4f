import { type MessagePort, parentPort } from "node:worker_threads";
import type { AnswerMessage, Call, RunMessage } from "../protocol.ts";
import { runShell } from "./run-shell.ts";

/** The entry of a shell's worker thread: waits for a run, answers with its end. */
const port = parentPort;
if (port === null) throw new Error("This file runs in a worker thread.");
const link = createHostLink(port);

/** The worker's end of the line to its host: asks, and waits for the answer. */
export interface HostLink {
  /** @throws Error with the host's message */
  ask(run: number, call: Call): Promise<unknown>;
  answer(message: { readonly call: number; readonly value?: unknown; readonly error?: string }): void;
}

port.on("message", (message: RunMessage | AnswerMessage) => {
  if (message.type === "answer") {
    link.answer(message);
    return;
  }
  const { run } = message;
  runShell(message, (call) => link.ask(run, call)).then(
    (end) => port.postMessage({ type: "done", run, ...end }),
    (thrown: unknown) => {
      const text = thrown instanceof Error ? thrown.message : String(thrown);
      // Scripts and models read this; where the packages of the host are is not theirs to know.
      const message = text.replaceAll(/(file:\/\/)?\/\S*node_modules\S*|file:\/\/\S+/g, "<path>");
      port.postMessage({ type: "failed", run, message });
    },
  );
});
port.postMessage({ type: "ready" });

function createHostLink(port: MessagePort): HostLink {
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
