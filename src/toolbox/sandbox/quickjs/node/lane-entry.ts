import { parentPort } from "node:worker_threads";
import type { FromLane, ToLane } from "../message.ts";
import { decodeFrame, encodeFrame, splitFrames } from "./frames.ts";
import { Machine } from "./machine.ts";

/** What a lane runs: a thread that talks through its port, or a process that talks through its pipes. */

let machine: Machine | undefined;

function receive(message: ToLane, post: (message: FromLane) => void): void {
  switch (message.type) {
    case "start":
    case "resume":
    case "invoke":
      machine = new Machine(message, post);
      void machine.begin();
      return;
    case "answer":
      machine?.answer(message);
      return;
    case "park":
      machine?.park(message.call);
      return;
    case "stop":
      machine?.stop();
      return;
  }
}

if (parentPort === null) {
  const post = (message: FromLane): void => {
    process.stdout.write(encodeFrame(message));
  };
  const take = splitFrames((line) => receive(decodeFrame(line) as ToLane, post));
  process.stdin.on("data", (chunk: Buffer) => take(chunk));
  process.stdin.on("end", () => process.exit(0));
  post({ type: "ready" });
} else {
  const port = parentPort;
  const post = (message: FromLane): void => {
    // An image is megabytes that this side has no more use for.
    const given = message.type === "image" ? [message.image.bytes.buffer as ArrayBuffer] : [];
    port.postMessage(message, given);
  };
  port.on("message", (message: ToLane) => receive(message, post));
  post({ type: "ready" });
}
