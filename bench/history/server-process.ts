import { fork } from "node:child_process";
import type { LongKind, ServerCommand, ServerFigures } from "./server.ts";

/** A host in another process. */
export interface LongServer {
  readonly url: string;
  seed(count: number): Promise<void>;
  /** Waits until the agent is only a file. */
  asleep(): Promise<void>;
  /** @param memory after garbage collection, which takes some time. */
  figures(options?: { readonly memory?: boolean }): Promise<ServerFigures>;
  stop(): Promise<void>;
}

interface Answer {
  readonly result?: unknown;
  readonly error?: string;
}

/** Starts one on the data in `dir`. Fails with what went wrong over there. */
export async function startServer(dir: string, kind: LongKind): Promise<LongServer> {
  const child = fork(new URL("./server.ts", import.meta.url), [dir, kind]);
  const answered = () =>
    new Promise<unknown>((resolve, reject) => {
      const ended = () => reject(new Error("The server ended."));
      child.once("exit", ended);
      child.once("message", ({ result, error }: Answer) => {
        child.off("exit", ended);
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      });
    });
  const ask = (command: ServerCommand) => {
    const answer = answered();
    child.send(command);
    return answer;
  };
  const url = String(await answered());
  return {
    url,
    seed: async (count) => void (await ask({ type: "seed", count })),
    asleep: async () => void (await ask({ type: "sleep" })),
    figures: async ({ memory = false } = {}) => (await ask({ type: "figures", memory })) as ServerFigures,
    async stop() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.send({ type: "stop" } satisfies ServerCommand);
      await gone;
    },
  };
}
