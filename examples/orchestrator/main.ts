import { serve } from "perdure/node";
import { buildPage } from "../shared/page.ts";
import { Orchestrator } from "./orchestrator.ts";
import { Session } from "./session.ts";

const { url } = await serve({
  agents: { Orchestrator, Session },
  dir: ".perdure/orchestrator",
  port: Number(process.env.PORT ?? 8787),
  assets: await buildPage(import.meta.dirname),
});
console.log(`Open ${url}`);
