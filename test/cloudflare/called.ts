import type { CloudflareHost } from "../../src/host/cloudflare/create-host.ts";
import type { HostedAgentClass } from "../../src/port.ts";

/** What a test asks of an agent by way of the Worker's own code. */
export interface Called {
  readonly cls: string;
  readonly name: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

type Methods = Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>;

/** Answers requests to agents, and `/call` with what a method of an agent returned. */
export function fetchFrom(
  host: CloudflareHost,
  classes: Readonly<Record<string, HostedAgentClass>>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const answer = await host.route(request);
    if (answer !== undefined) return answer;
    if (new URL(request.url).pathname !== "/call") return new Response("nothing here", { status: 404 });
    const { cls, name, method, args } = (await request.json()) as Called;
    const agentClass = classes[cls];
    if (agentClass === undefined) return new Response(`no class ${cls}`, { status: 400 });
    const stub = host.getAgentByName(agentClass, name) as unknown as Methods;
    try {
      return Response.json({ ok: (await stub[method]?.(...args)) ?? null });
    } catch (thrown) {
      const { message, code } = thrown as Error & { readonly code?: string };
      return Response.json({ error: { message, code } });
    }
  };
}
