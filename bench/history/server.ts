// The host of one measurement, in a process of its own: its memory and its processor time are those of the agent.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { serve } from "perdure/node";
import { WalWatch } from "../../test/support/wal-watch.ts";
import { memory, until } from "../foundation/measure.ts";
import { LongChat, LongThink } from "./agents.ts";

/** What the measuring process may ask for. */
export type ServerCommand =
  | { readonly type: "seed"; readonly count: number }
  /** Waits until the agent has left memory. */
  | { readonly type: "sleep" }
  | { readonly type: "figures"; readonly memory: boolean }
  | { readonly type: "stop" };

/** What it has cost so far. */
export interface ServerFigures {
  readonly cpuMs: number;
  readonly writtenBytes: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
}

/** The classes under measurement. */
export type LongKind = "think" | "chat";

/** Long enough for a turn to follow another in one life, short enough to wait for its end. */
const IDLE_MS = 1_000;
const MICROSECONDS = 1000;

const [dir = "", kind = "think"] = process.argv.slice(2);
const AGENT = kind === "think" ? LongThink : LongChat;
let watch: WalWatch | undefined;

const host = await serve({
  agents: { Long: AGENT },
  dir,
  port: 0,
  signals: false,
  idleMs: IDLE_MS,
  onCommit: (_count, agentId) => {
    if (agentId !== "") (watch ??= openWatch())?.look();
  },
});

function openWatch(): WalWatch | undefined {
  const folder = join(dir, "agents", "Long");
  const name = readdirSync(folder).find((file) => file.endsWith(".db"));
  return name === undefined ? undefined : new WalWatch(join(folder, name));
}

async function answer(command: ServerCommand): Promise<ServerFigures | undefined> {
  switch (command.type) {
    case "seed":
      await (AGENT === LongThink ? host.getAgentByName(LongThink, "one") : host.getAgentByName(LongChat, "one")).seed(
        command.count,
      );
      return undefined;
    case "sleep":
      await until(() => host.status().live === 0);
      return undefined;
    case "figures": {
      const { user, system } = process.cpuUsage();
      const { heap, rss } = command.memory ? await memory() : { heap: 0, rss: 0 };
      return {
        cpuMs: (user + system) / MICROSECONDS,
        writtenBytes: watch?.written.bytes ?? 0,
        heapBytes: heap,
        rssBytes: rss,
      };
    }
    case "stop":
      await host.stop();
      process.disconnect();
  }
}

process.on("message", (command: ServerCommand) => {
  answer(command).then(
    (result) => process.connected && process.send?.({ result }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
// Who measures is gone.
process.on("disconnect", () => process.exit());
process.send?.({ result: host.url });
