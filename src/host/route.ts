import { errorText, PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentPath, AgentStep, ReadVerdict } from "../port.ts";
import { type Address, type AgentAddress, parseAddress, parseChildAddress } from "../wire/address.ts";
import { agentId } from "../wire/agent-path.ts";
import { readVerdict, type Verdict } from "../wire/fetch-object.ts";
import { corsHeaders, type Cors, withHeaders } from "./cors.ts";
import { boundedRequest, withPath } from "./genuine-request.ts";
import { hostOf, type HostGate, type Hosts } from "./host-names.ts";
import type { Admission, Approach, OriginGate, Origins } from "./origin.ts";
import type { Reach } from "./reach.ts";
import type { Registry } from "./registry.ts";

/** How much is told of a header that a stranger wrote. */
const TOLD_LENGTH = 200;
const NOTHING_THERE =
  "Pages of other sites may not wake an agent that is not there. If they should, set `cors` or `origins` of serve() or createHost().";
/** Told to sockets, whose clients have nothing else to go by. Which classes there are is nobody's business. */
const UNKNOWN_CLASS = "no agent class of this name: see the option `agents` of the host";

/** Whom a request is for: the agent at the root of its address, and the whole path to the one meant. */
export interface AddressedAgent extends AgentStep {
  /** Root first. The last step is the agent that is meant: the root itself, or a child below it. */
  readonly path: AgentPath;
}

/**
 * Refuses (a Response), replaces (a Request), identifies (`{ identity }`, with a `request` to replace it too) or lets pass
 * (nothing). May be slow; throwing, or returning anything else, answers 500.
 */
export type BeforeHook = (request: Request, agent: AddressedAgent) => Verdict | Promise<Verdict>;

/** How requests find their agent. */
export interface RouteOptions {
  /** First segments of every address. Default `agents`. */
  readonly prefix?: string;
  /** Cross-origin access for HTTP. Default off. */
  readonly cors?: Cors;
  /**
   * Other origins whose pages may open sockets and send changing requests, beside the host's own, those of `cors`, and this
   * machine's when the host is on it too. Others get 403. Requests without `Origin` come from no page and are let in.
   */
  readonly origins?: Origins;
  /** Names this host answers to (`Host` header); others get 421. Default: this machine's for `serve()` on it, else all. */
  readonly hosts?: Hosts;
  /** Largest body of a request to an agent, in bytes; more is refused with 413. Default 32 MiB. */
  readonly maxBodyBytes?: number;
  /** Before an HTTP request reaches its agent, and before that agent is woken. */
  readonly onBeforeRequest?: BeforeHook;
  /** Before a socket reaches its agent. A 4xx response makes the public clients give up; others, try again. */
  readonly onBeforeConnect?: BeforeHook;
}

/** Where a request goes, or what it is answered with. */
type Destination =
  | {
      readonly kind: "agent";
      readonly path: AgentPath;
      readonly rest: string;
      readonly request: Request;
      /** Who sent it, if a hook has said so. */
      readonly identity: Identity | undefined;
      /** An agent on the way has said that its sender may only read. */
      readonly mayOnlyRead: boolean;
    }
  /** `reason`: what a socket is closed with instead. */
  | { readonly kind: "answer"; readonly response: Response; readonly reason?: string }
  | { readonly kind: "not-ours" };

/** The options of a router, read. */
export interface RouteRules extends Omit<RouteOptions, "origins" | "hosts"> {
  readonly admits: OriginGate;
  readonly answersTo: HostGate;
  readonly maxBodyBytes: number;
}

/** Finds the agent of a request, asks the hooks and the gates on the way, and hands it over. */
export class Router {
  readonly #reach: Reach;
  readonly #registry: Registry;
  readonly #options: RouteRules;

  constructor(reach: Reach, registry: Registry, options: RouteRules) {
    this.#reach = reach;
    this.#registry = registry;
    this.#options = options;
  }

  /** Answers an HTTP request, or returns `undefined` when its path is not an agent's. Never rejects. */
  async respond(request: Request, root?: AgentStep): Promise<Response | undefined> {
    const headers = corsHeaders(this.#options.cors);
    try {
      const found = this.#find(request, root);
      if (found.kind === "not-ours") return undefined;
      this.#checkName(request, found, "request");
      const address = understood(found);
      if (headers !== undefined && request.method === "OPTIONS") return new Response(null, { headers });
      // No Request can hold this method, and nobody should serve it.
      if (request.method === "TRACE") throw new Refusal(405, "Method Not Allowed");
      const bounded = boundedRequest(request, this.#options.maxBodyBytes);
      await this.#admit(bounded, address.path, "request");
      const destination = await this.#resolve(bounded, address, "onBeforeRequest");
      if (destination.kind !== "agent") return withHeaders(destination.response, headers);
      return withHeaders(await this.#deliver(destination), headers);
    } catch (thrown) {
      return withHeaders(failureResponse(thrown), headers);
    }
  }

  /** Finds the agent for an upgrade. Never rejects. */
  async connect(request: Request, root?: AgentStep): Promise<Destination> {
    try {
      const found = this.#find(request, root);
      if (found.kind === "not-ours") return found;
      this.#checkName(request, found, "socket");
      const address = understood(found);
      await this.#admit(request, address.path, "socket");
      return await this.#resolve(request, address, "onBeforeConnect");
    } catch (thrown) {
      const reason = thrown instanceof Refusal ? thrown.reason : undefined;
      return { kind: "answer", response: failureResponse(thrown), ...(reason !== undefined && { reason }) };
    }
  }

  /** Before anything else, so that nothing can be learned of this host under a name that is not its own. */
  #checkName(request: Request, found: Exclude<Address, { kind: "not-ours" }>, approach: Approach): void {
    const path = found.kind === "agent" ? found.path : undefined;
    try {
      if (this.#options.answersTo(request)) return;
    } catch (thrown) {
      if (path !== undefined) this.#failed(path, "hosts", thrown);
      throw new Refusal(500, "Internal Server Error");
    }
    const host = hostOf(request).slice(0, TOLD_LENGTH);
    const { method } = request;
    if (path !== undefined) this.#reach.publish(path, agentId(path), "host:refused", { host, method, approach });
    throw new Refusal(421, misdirected(request), "host not allowed: see the option `hosts` of the host");
  }

  /** Keeps the pages of strangers out, before any hook or agent hears of them. */
  async #admit(request: Request, path: AgentPath, approach: Approach): Promise<void> {
    const admission = this.#admission(request, path, approach);
    if (admission === "yes" || (admission === "existing" && (await this.#reach.exists(path)))) return;
    const origin = (request.headers.get("origin") ?? "").slice(0, TOLD_LENGTH);
    this.#reach.publish(path, agentId(path), "origin:refused", { origin, method: request.method, approach });
    if (admission === "existing") throw new Refusal(403, NOTHING_THERE);
    throw new Refusal(
      403,
      `Pages of the origin ${origin} may not do this. If they should, set \`origins: [${JSON.stringify(origin)}]\` of ` +
        "serve() or createHost(). If it is the host's own page, a proxy between them must pass the Host header on.",
      "origin not allowed: see the option `origins` of the host",
    );
  }

  #admission(request: Request, path: AgentPath, approach: Approach): Admission {
    try {
      return this.#options.admits(request, approach);
    } catch (thrown) {
      this.#failed(path, "origins", thrown);
      throw new Refusal(500, "Internal Server Error");
    }
  }

  #find(request: Request, root: AgentStep | undefined): Address {
    if (root !== undefined) this.#registry.get(root.className);
    const { pathname } = new URL(request.url);
    return root === undefined
      ? parseAddress(pathname, { ...this.#options, ...this.#classes() })
      : parseChildAddress(root, pathname, this.#registry.isClass);
  }

  #classes() {
    return { isRootClass: this.#registry.isRootClass, isClass: this.#registry.isClass };
  }

  async #resolve(
    original: Request,
    address: AgentAddress,
    hook: "onBeforeRequest" | "onBeforeConnect",
  ): Promise<Exclude<Destination, { kind: "not-ours" }>> {
    const before = await this.#ask(hook, original, address.path);
    if (before.refusal !== undefined) return { kind: "answer", response: before.refusal };
    let { request = original, identity } = before;
    let mayOnlyRead = false;
    for (const hop of address.hops) {
      const admitted = await this.#reach.admitChild(hop.parent, request, hop.child, identity);
      if (admitted.refusal !== undefined) return { kind: "answer", response: admitted.refusal };
      // The gate may change everything of a request but where it goes.
      request = admitted.request ?? request;
      identity = admitted.identity ?? identity;
      mayOnlyRead ||= admitted.mayOnlyRead === true;
    }
    return {
      kind: "agent",
      path: address.path,
      rest: address.rest,
      request: address.hops.length === 0 ? request : withPath(request, address.rest),
      identity,
      mayOnlyRead,
    };
  }

  /** No agent hears of what a hook throws, and the client must not: so it is said here. */
  async #ask(hook: "onBeforeRequest" | "onBeforeConnect", request: Request, path: AgentPath): Promise<ReadVerdict> {
    try {
      return readVerdict(await this.#options[hook]?.(request, { ...path[0], path }), hook);
    } catch (thrown) {
      this.#failed([path[0]], hook, thrown);
      throw thrown;
    }
  }

  #failed(path: AgentPath, stage: string, thrown: unknown): void {
    this.#reach.failed(path, stage, thrown);
  }

  #deliver({ path, rest, request, identity, mayOnlyRead }: Extract<Destination, { kind: "agent" }>): Promise<Response> {
    return this.#reach.request(path, request, rest, identity, mayOnlyRead);
  }
}

class Refusal extends Error {
  readonly status: number;
  readonly reason: string | undefined;
  constructor(status: number, text: string, reason?: string) {
    super(text);
    this.status = status;
    this.reason = reason;
  }
}

/** What is said to a request under a name that is none of the host's. */
export function misdirected(request: Request): string {
  const name = JSON.stringify(hostOf(request).replace(/:\d+$/, "").slice(0, TOLD_LENGTH));
  return `This host does not answer to the name ${name}. If it should, set \`hosts: [${name}]\` of serve() or createHost().`;
}

function understood(found: Exclude<Address, { kind: "not-ours" }>): AgentAddress {
  if (found.kind === "unknown-class") throw new Refusal(400, "Invalid request", UNKNOWN_CLASS);
  if (found.kind === "refused") throw new Refusal(400, "Bad Request");
  return found;
}

/** The answer to what was thrown. Codes of ours are told; anything else stays in the log. */
export function failureResponse(thrown: unknown): Response {
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
  too_large: 413,
  limit: 503,
  fenced: 503,
  host_stopped: 503,
  disk_full: 507,
};
