import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { agentFileName } from "../../src/host/node/agent-file.ts";
import { withFolder } from "../foundation/agent.ts";
import { PagedClient } from "../history/client.ts";
import { startServer } from "../history/server-process.ts";
import type { Row } from "./row.ts";

const KIB = 1024;

/** What an agent takes on the disk when it has hardly said anything. */
export async function fileRows(): Promise<Row[]> {
  return withFolder(async (dir) => {
    mkdirSync(dir, { recursive: true });
    const server = await startServer(dir, "think");
    const { client } = await PagedClient.open(server.url);
    await client.turn("chunks=10 tag=x");
    await client.close();
    await server.asleep();
    await server.stop();
    return [
      {
        what: "file of an agent with one message and its answer",
        ...{ unit: "KiB", ours: statSync(join(dir, agentFileName("Long/one"))).size / KIB },
        aim: { atMost: 64 },
      },
    ];
  });
}
