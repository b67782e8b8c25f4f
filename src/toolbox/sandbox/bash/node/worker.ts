import { parentPort } from "node:worker_threads";
import type { AnswerMessage, RunMessage } from "../protocol.ts";
import { createHostLink } from "./host-link.ts";
import { runShell } from "./run-shell.ts";

/** The entry of a shell's worker thread: waits for a run, answers with its end. */
const port = parentPort;
if (port === null) throw new Error("This file runs in a worker thread.");
const link = createHostLink(port);

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
