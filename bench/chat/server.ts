// The server that a load driver measures.
import { serve } from "perdure/node";
import { BenchAgent, BenchThink } from "./agents.ts";

const host = await serve({
  agents: { BenchAgent, BenchThink },
  dir: process.env.STATE_DIR ?? ".perdure/bench",
  port: Number(process.env.PORT ?? 8787),
  fetch: () => new Response("ok"),
});
console.log(`Listening on ${host.url}`);
