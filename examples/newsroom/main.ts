import { fork } from "node:child_process";
import { join } from "node:path";
import { Agent } from "perdure";
import { serve } from "perdure/node";
import { buildPage } from "../shared/page.ts";

const dir = ".perdure/newsroom";

/** Keeps the rows of a session and shows them to all who have it open. It needs no code of its own. */
class Newsroom extends Agent {
  override getCollections() {
    return { "*": {} };
  }
}

const { url } = await serve({
  agents: { Newsroom },
  dir,
  port: Number(process.env.PORT ?? 8787),
  assets: await buildPage(import.meta.dirname),
});

// The same session on another backend: nothing but its address changes.
const onStreams = process.argv.includes("--backend=durable-streams");
const session = onStreams ? await startStream() : `${url}/agents/newsroom/today`;

for (const program of ["run-agents.ts", "run-tools.ts"]) keepRunning(program);
console.log(`Open ${url}${onStreams ? `/?session=${encodeURIComponent(session)}` : ""}`);

async function startStream(): Promise<string> {
  const { DurableStreamTestServer } = await import("@durable-streams/server");
  const server = new DurableStreamTestServer({ dataDir: join(dir, "streams"), port: 0 });
  return `${await server.start()}/v1/stream/newsroom`;
}

/** In a process of its own. Kill it while it works: what it did is in the session, and the next one goes on. */
function keepRunning(program: string): void {
  const child = fork(join(import.meta.dirname, program), [session]);
  console.log(`${program} is process ${child.pid}`);
  child.once("exit", () => setTimeout(keepRunning, 1_000, program));
}
