// The host under measurement, in a process of its own: nothing but what clients send holds up its event loop.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Agent, AIChatAgent, callable, type Collections } from "perdure";
import { agentMcpServer, createMcpHandler } from "perdure/mcp";
import { serve } from "perdure/node";
import { Work } from "./work.ts";

const NANOSECONDS = 1e6;
const MICROSECONDS = 1e3;

/** Takes whatever it is given. */
class Box extends Agent {
  static {
    callable(this, "take");
  }
  static override options = { allowClientState: true };
  override initialState = {};

  take(): number {
    return 1;
  }
  override getCollections(): Collections {
    return { "*": {} };
  }
}

/** Answers with one word. */
class Talk extends AIChatAgent {
  override onChatMessage(): Promise<Response> {
    return Promise.resolve(new Response("heard"));
  }
}

const dir = mkdtempSync(join(tmpdir(), "perdure-stall-"));
const lag = monitorEventLoopDelay({ resolution: 1 });
lag.enable();

// What the loop's own thread computed between two turns: on a busy machine it waits for a core as well, which is no stall of ours.
let worked = 0;
let before = process.threadCpuUsage();
setInterval(() => {
  const { user, system } = process.threadCpuUsage(before);
  before = process.threadCpuUsage();
  worked = Math.max(worked, (user + system) / MICROSECONDS);
}, 1).unref();

const mcp = createMcpHandler(agentMcpServer({ take: () => 1 }, { name: "box", methods: { take: {} } }));

const host = await serve({
  agents: { Box, Talk, Work },
  dir,
  port: 0,
  signals: false,
  log: false,
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/mcp") return mcp(request);
    if (pathname !== "/lag") return undefined;
    const max = lag.max / NANOSECONDS;
    const cpu = worked;
    lag.reset();
    worked = 0;
    return Response.json({ max, cpu });
  },
});
process.send?.(host.url);

process.on("message", () => {
  void host.stop().then(() => {
    rmSync(dir, { recursive: true, force: true });
    process.disconnect();
  });
});
