// The shell alone, in a thread of its own: it changes the realm that it runs in. Times are taken in here.
import { parentPort } from "node:worker_threads";
import { Bash, InMemoryFs } from "just-bash";
import { FILES, sampleFile } from "./sample.ts";

/** What the thread is asked: to run a script so many times. */
export interface BareShellTask {
  readonly script: string;
  readonly count: number;
  readonly files: boolean;
}

const sample = Object.fromEntries(
  Array.from({ length: FILES }, (_, n) => [sampleFile(n).path, sampleFile(n).text] as const),
);
const filled = new InMemoryFs(sample);

parentPort?.on("message", async ({ script, count, files }: BareShellTask) => {
  const begun = performance.now();
  let stdout = "";
  for (let i = 0; i < count; i++) {
    const bash = new Bash({ fs: files ? filled : new InMemoryFs({}), executionLimitProfile: "hardened" });
    ({ stdout } = await bash.exec(script, { rawScript: true }));
  }
  parentPort?.postMessage({ ms: (performance.now() - begun) / count, lines: stdout.split("\n").length - 1 });
});
