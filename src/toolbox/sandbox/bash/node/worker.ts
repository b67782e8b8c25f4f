import { parentPort } from "node:worker_threads";
import type { AnswerMessage, Call, RunMessage } from "../protocol.ts";
import { runShell } from "./run-shell.ts";

/** The entry of a shell's worker thread: waits for a run, answers with its end. */
const port = parentPort;
if (port === null) throw new Error("This file runs in a worker thread.");
const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
let calls = 0;

port.on("message", (message: RunMessage | AnswerMessage) => {
  if (message.type === "answer") return answered(message);
  const { run } = message;
  runShell(message, (call) => ask(run, call)).then(
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

/** Asks the host, and waits for the answer. @throws Error with the host's message */
function ask(run: number, ask: Call): Promise<unknown> {
  const call = calls++;
  return new Promise((resolve, reject) => {
    waiting.set(call, { resolve, reject });
    port?.postMessage({ type: "call", run, call, ask });
  });
}

function answered({ call, value, error }: AnswerMessage): void {
  const open = waiting.get(call);
  waiting.delete(call);
  if (error === undefined) open?.resolve(value);
  else open?.reject(new Error(error));
}
