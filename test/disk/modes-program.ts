// A host with agents, blobs and files, made under the umask that it is told.
import { join } from "node:path";
import { Agent } from "perdure";
import { createHost } from "perdure/node";
import { directoryFiles } from "perdure/tools";
import { parts } from "../../src/parts/part.ts";

const [dir = "", umask = "0"] = process.argv.slice(2);
process.umask(Number.parseInt(umask, 8));

class Keeper extends Agent {
  async keep(): Promise<void> {
    this.sql`CREATE TABLE IF NOT EXISTS t (x)`;
    await this[parts].host.blobs.put(new TextEncoder().encode("bytes"));
    await directoryFiles(join(dir, "files")).put(`ab/x/${"0".repeat(64)}`, new TextEncoder().encode("more bytes"));
  }
}

const host = createHost({ agents: { Keeper }, dir });
await host.getAgentByName(Keeper, "a").keep();
process.stdout.write("kept\n");
process.stdin.once("end", () => void host.stop());
process.stdin.resume();
