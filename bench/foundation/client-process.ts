import { fork } from "node:child_process";
import type { ClientCommand } from "./client.ts";

/** A process that holds the client side of sockets. */
export interface ClientProcess {
  /** @throws Error with what went wrong over there */
  run(command: ClientCommand): Promise<number>;
  close(): void;
}

export function startClient(): ClientProcess {
  const child = fork(new URL("./client.ts", import.meta.url));
  return {
    run(command) {
      return new Promise((resolve, reject) => {
        child.once("message", (answer: { result?: number; error?: string }) => {
          if (answer.error === undefined) resolve(answer.result ?? 0);
          else reject(new Error(answer.error));
        });
        child.send(command);
      });
    },
    close: () => void child.kill(),
  };
}
