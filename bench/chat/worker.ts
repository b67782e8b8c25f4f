// The same agents as objects: `npm run -s workerd:build -- bench/chat/worker.ts OUT`, then `workerd:serve`.
import { createCloudflareHost } from "perdure/cloudflare";
import { BenchAgent, BenchThink } from "./agents.ts";

const host = createCloudflareHost({ agents: { BenchAgent, BenchThink } });

export const { PerdureObject } = host;
export default {
  fetch: async (request: Request): Promise<Response> => (await host.route(request)) ?? new Response("ok"),
};
