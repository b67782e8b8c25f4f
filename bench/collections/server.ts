// Both servers that sessions can be kept by, in a process of their own: prints where they are.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DurableStreamTestServer } from "@durable-streams/server";
import { Agent } from "perdure";
import { serve } from "perdure/node";

class Room extends Agent {
  override getCollections() {
    return { "*": {} };
  }
}

const dir = mkdtempSync(join(tmpdir(), "perdure-bench-"));
const streams = new DurableStreamTestServer({ port: 0, dataDir: join(dir, "streams") });
const host = await serve({ agents: { Room }, dir: join(dir, "host"), port: 0, signals: false });
process.send?.({ perdure: host.url, streams: await streams.start() });
process.once("disconnect", () => {
  rmSync(dir, { recursive: true, force: true });
  process.exit();
});
