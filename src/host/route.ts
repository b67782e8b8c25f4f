import { errorText, PerdureError } from "../error.ts";
import type { AgentPath, AgentStep } from "../port.ts";
import { type AgentAddress, parseAddress, parseChildAddress } from "../wire/address.ts";
import { agentId } from "../wire/agent-path.ts";
import { checkVerdict, isRequest, isResponse } from "../wire/fetch-object.ts";
import { corsHeaders, type Cors, withHeaders } from "./cors.ts";
import { genuineRequest, withPath } from "./genuine-request.ts";
import type { Registry } from "./registry.ts";
import type { Runtime } from "./runtime.ts";

/** Refuses (a Response), replaces (a Request) or lets pass (nothing). May be slow; throwing answers 500. */
export type BeforeHook = (
  request: Request,
  agent: AgentStep,
) => Request | Response | undefined | void | Promise<Request | Response | undefined | void>;

/** How requests find their agent. */
export interface RouteOptions {
  /** First segments of every address. Default `agents`. */
  readonly prefix?: string;
  /** Cross-origin access for HTTP. Default off. */
  readonly cors?: Cors;
  /** Before an HTTP request reaches its agent, and before that agent is woken. */
  readonly onBeforeRequest?: BeforeHook;
  /** Before a socket reaches its agent. A 4xx response makes the public clients give up; others, try again. */
  readonly onBeforeConnect?: BeforeHook;
}

/** Where a request goes, or what it is answered with. */
export type Destination =
  | { readonly kind: "agent"; readonly path: AgentPath; readonly rest: string; readonly request: Request }
  | { readonly kind: "answer"; readonly response: Response }
  | { readonly kind: "not-ours" };

/** Finds the agent of a request, asks the hooks and the gates on the way, and hands it over. */
export class Router {
  readonly #runtime: Runtime;
  readonly #registry: Registry;
  readonly #options: RouteOptions;

  constructor(runtime: Runtime, registry: Registry, options: RouteOptions) {
    this.#runtime = runtime;
    this.#registry = registry;
    this.#options = options;
  }

  /** Answers an HTTP request, or returns `undefined` when its path is not an agent's. Never rejects. */
  async respond(request: Request, root?: AgentStep): Promise<Response | undefined> {
    const headers = corsHeaders(this.#options.cors);
    try {
      const address = this.#address(request, root);
      if (address.kind === "not-ours") return undefined;
      if (headers !== undefined && request.method === "OPTIONS") return new Response(null, { headers });
      // No Request can hold this method, and nobody should serve it.
      if (request.method === "TRACE") throw new Refusal(405, "Method Not Allowed");
      const destination = await this.#resolve(genuineRequest(request), address, "onBeforeRequest");
      if (destination.kind !== "agent") return withHeaders(destination.response, headers);
      return withHeaders(await this.#deliver(destination), headers);
    } catch (thrown) {
      return withHeaders(failure(thrown), headers);
    }
  }

  /** Finds the agent for an upgrade. Never rejects. */
  async connect(request: Request, root?: AgentStep): Promise<Destination> {
    try {
      const address = this.#address(request, root);
      if (address.kind === "not-ours") return address;
      return await this.#resolve(request, address, "onBeforeConnect");
    } catch (thrown) {
      return { kind: "answer", response: failure(thrown) };
    }
  }

  #address(request: Request, root: AgentStep | undefined): AgentAddress | { kind: "not-ours" } {
    if (root !== undefined) this.#registry.get(root.className);
    const { pathname } = new URL(request.url);
    const address =
      root === undefined
        ? parseAddress(pathname, { ...this.#options, ...this.#classes() })
        : parseChildAddress(root, pathname, this.#registry.isClass);
    if (address.kind === "unknown-class") throw new Refusal(400, "Invalid request");
    if (address.kind === "refused") throw new Refusal(400, "Bad Request");
    return address;
  }

  #classes() {
    return { isRootClass: this.#registry.isRootClass, isClass: this.#registry.isClass };
  }

  async #resolve(
    original: Request,
    address: AgentAddress,
    hook: "onBeforeRequest" | "onBeforeConnect",
  ): Promise<Exclude<Destination, { kind: "not-ours" }>> {
    let request = original;
    const before = await this.#ask(hook, request, address.path[0]);
    if (isResponse(before)) return { kind: "answer", response: before };
    if (isRequest(before)) request = before;
    for (const hop of address.hops) {
      const parent = this.#runtime.cell(hop.parent);
      const admitted = await parent.use((agent) => agent.admitChild(request, hop.child));
      if (isResponse(admitted)) return { kind: "answer", response: admitted };
      // The gate may change everything of a request but where it goes.
      if (isRequest(admitted)) request = admitted;
    }
    return {
      kind: "agent",
      path: address.path,
      rest: address.rest,
      request: address.hops.length === 0 ? request : withPath(request, address.rest),
    };
  }

  /** No agent hears of what a hook throws, and the client must not: so it is said here. */
  async #ask(
    hook: "onBeforeRequest" | "onBeforeConnect",
    request: Request,
    agent: AgentStep,
  ): Promise<Request | Response | undefined | void> {
    try {
      return checkVerdict(await this.#options[hook]?.(request, agent), hook);
    } catch (thrown) {
      const path: AgentPath = [agent];
      const id = agentId(path);
      this.#runtime.publish(path, id, "agent:failed", { stage: hook, error: errorText(thrown) });
      console.error(`[${id}] ${hook}:`, thrown);
      throw thrown;
    }
  }

  #deliver({ path, rest, request }: Extract<Destination, { kind: "agent" }>): Promise<Response> {
    return this.#runtime.cell(path).use(async (agent, life) => {
      const response = await agent.request(request, rest);
      await life.gate.settled();
      return response;
    });
  }
}

class Refusal extends Error {
  readonly status: number;
  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** The answer to what was thrown. Codes of ours are told; anything else stays in the log. */
function failure(thrown: unknown): Response {
  if (thrown instanceof Refusal) return new Response(thrown.message, { status: thrown.status });
  if (!PerdureError.is(thrown)) return new Response("Internal Server Error", { status: 500 });
  const status = STATUS[thrown.code] ?? 500;
  const text = status === 500 ? "Internal Server Error" : errorText(thrown);
  return Response.json({ error: { code: thrown.code, message: text } }, { status });
}

const STATUS: Partial<Record<PerdureError["code"], number>> = {
  bad_input: 400,
  unknown_agent: 404,
  not_found: 404,
  read_only: 403,
  limit: 503,
  host_stopped: 503,
  disk_full: 507,
};
