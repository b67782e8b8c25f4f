import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PerdureError } from "../../../../base/error.ts";
import type { BundleAnswer, BundleJob } from "./protocol.ts";

const IDLE_MS = 10_000;
const MAX_HEAP_MB = 512;

/** A process that is started when there is a job, and ends when there has been none for a while. */
export function createBundleProcess(timeoutMs: number) {
  let child: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;
  let line: Promise<unknown> = Promise.resolve();

  const end = () => {
    clearTimeout(idle);
    child?.kill("SIGKILL");
    child = undefined;
  };
  const start = () => {
    const entry = new URL(import.meta.url.endsWith(".ts") ? "./bundle-child.ts" : "./bundle-child.js", import.meta.url);
    // Nothing of the host's environment: no keys, no NODE_OPTIONS, no NODE_PATH that would add packages.
    const started = fork(fileURLToPath(entry), [], {
      env: {},
      execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    started.on("error", () => {});
    return started;
  };
  const once = async (job: BundleJob): Promise<BundleAnswer> => {
    clearTimeout(idle);
    const worker = (child ??= start());
    worker.ref();
    worker.channel?.ref();
    try {
      return await answerOf(worker, job, timeoutMs);
    } catch (thrown) {
      if (child === worker) end();
      throw thrown;
    } finally {
      if (child === worker) {
        // It must not keep the host alive.
        worker.unref();
        worker.channel?.unref();
        idle = setTimeout(end, IDLE_MS).unref();
      }
    }
  };
  return {
    /** @throws PerdureError `timeout` when it takes too long (the process is ended), `call_failed` when the process dies */
    run(job: BundleJob): Promise<BundleAnswer> {
      const done = line.then(() => once(job));
      line = done.catch(() => undefined);
      return done;
    },
    async close(): Promise<void> {
      await line;
      end();
    },
  };
}

function answerOf(worker: ChildProcess, job: BundleJob, timeoutMs: number): Promise<BundleAnswer> {
  return new Promise((resolve, reject) => {
    const stop = (then: () => void) => {
      clearTimeout(timer);
      worker.off("message", answer);
      worker.off("exit", died);
      then();
    };
    const answer = (message: unknown) => stop(() => resolve(message as BundleAnswer));
    const died = () => stop(() => reject(new PerdureError("call_failed", "The process that bundles packages died.")));
    const late = () => stop(() => reject(new PerdureError("timeout", `Bundling took longer than ${timeoutMs} ms.`)));
    const timer = setTimeout(late, timeoutMs);
    worker.once("message", answer);
    worker.once("exit", died);
    worker.send(job, (error) => {
      if (error !== null) died();
    });
  });
}
