// The least that a call into another thread can be: says what it hears.
import { parentPort } from "node:worker_threads";

parentPort?.on("message", (message: unknown) => parentPort?.postMessage(message));
