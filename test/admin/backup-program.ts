// A host whose agents answer all the time, for backups that are made meanwhile. Tells what was acknowledged, and when.
import { setTimeout } from "node:timers/promises";
import { Think } from "perdure";
import { createHost } from "perdure/node";
import { programDir, report, scriptedModel } from "perdure/testing";

const AGENTS = 12;
const LONG = 3_000_000;
const PICTURE = `data:image/png;base64,${Buffer.alloc(60_000, 7).toString("base64")}`;
const model = scriptedModel(() => "Yes.");

class Desk extends Think {
  override workspaceTools = false as const;
  override mediaRetention = { keepInMessages: 1 };

  override getModel() {
    return model;
  }

  /** Makes it large enough to be copied in pieces, with a file. */
  async grow(): Promise<void> {
    this.sql`CREATE TABLE IF NOT EXISTS ballast (bytes BLOB)`;
    this.sql`INSERT INTO ballast VALUES (randomblob(${LONG}))`;
    await this.saveMessages([
      { id: "picture", role: "user", parts: [{ type: "file", mediaType: "image/png", url: PICTURE }] },
    ]);
  }
}

const host = createHost({
  agents: { Desk },
  dir: programDir(),
  log: false,
  idleMs: 500,
  limits: { openDatabases: 6 },
});
await host.getAgentByName(Desk, "a0").grow();
report({ type: "grown" });

for (let n = 0; ; n++) {
  const round = Array.from({ length: AGENTS }, async (_, at) => {
    const name = `a${at}`;
    const said = `${process.pid}-${n}`;
    await host.getAgentByName(Desk, name).runTurn({ input: said });
    report({ type: "said", name, said, at: Date.now() });
  });
  await Promise.all(round);
  await setTimeout(50);
}
