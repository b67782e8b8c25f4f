// Both servers that sessions can be kept by, in a process of their own: prints where they are.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
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

/** Memory, where it can be had: what is measured is what the programs do, not how busy the disk is. */
const MEMORY = "/dev/shm";
const dir = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "perdure-bench-"));
const streams = new DurableStreamTestServer({ port: 0, dataDir: join(dir, "streams") });
const host = await serve({ agents: { Room }, dir: join(dir, "host"), port: 0, signals: false });
process.send?.({ perdure: host.url, streams: await streams.start() });
process.once("disconnect", () => {
  rmSync(dir, { recursive: true, force: true });
  process.exit();
});
