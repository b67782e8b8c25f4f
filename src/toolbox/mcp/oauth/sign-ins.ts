import { PerdureError } from "../../../base/error.ts";
import type { McpConnection } from "../client/connection.ts";
import { reasonOf } from "../client/failure.ts";
import { type FetchRules, serverFetch } from "../client/http-fetch.ts";
import { httpOptions } from "../client/link.ts";
import type { McpHost } from "../client/types.ts";
import { loadClientSdk } from "../load-sdk.ts";
import { answerCallback, type McpOAuthCallbackOptions, type McpOAuthResult } from "./callback.ts";
import { type Flow, readFlowState, takeFlow } from "./flows.ts";
import type { McpOAuthProvider } from "./own-provider.ts";
import { CellOAuthProvider } from "./provider.ts";

/** Where people come back to, behind the agent's address. */
export const CALLBACK = "callback";

/** What sign-ins are made with. */
interface SignInOptions {
  readonly host: McpHost;
  readonly rules: FetchRules;
  readonly clientName: string;
  readonly createProvider:
    | ((where: { readonly serverId: string; readonly callbackUrl: string | undefined }) => McpOAuthProvider | undefined)
    | undefined;
}

/** Sends people to sign in, and takes them back, also when the process was another one when they left. */
export class SignIns {
  readonly #options: SignInOptions;
  /** What people see when they come back. */
  callback: McpOAuthCallbackOptions = {};

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  /** What the client package signs in with. Nothing for programs, and while it is not known where people come back to. */
  providerOf(connection: McpConnection, flow?: Flow): CellOAuthProvider | undefined {
    const { record } = connection;
    if (record.target.kind !== "http") return undefined;
    const { host, clientName, createProvider } = this.#options;
    const own = createProvider?.({ serverId: record.id, callbackUrl: record.callbackUrl });
    const ownWay = own !== undefined && "redirectUrl" in own;
    if (!ownWay && record.callbackUrl === undefined) return undefined;
    const redirect = (authUrl: string) => connection.needsAuth(authUrl);
    return new CellOAuthProvider({ db: host, clock: host.clock, clientName, redirect, record, flow, own });
  }

  /** Whether a request is somebody who comes back. */
  isReturn(request: Request, rest: string, connections: readonly McpConnection[]): boolean {
    if (request.method !== "GET" || connections.length === 0) return false;
    const { pathname, searchParams } = new URL(request.url);
    if (!searchParams.has("state") || !(searchParams.has("code") || searchParams.has("error"))) return false;
    return (
      rest === `/${CALLBACK}` ||
      connections.some(
        ({ record: { callbackUrl } }) => callbackUrl !== undefined && new URL(callbackUrl).pathname === pathname,
      )
    );
  }

  /** Ends a sign-in. Each can be ended once, in time, and only with what it was begun with. */
  async comeBack(
    url: URL,
    find: (serverId: string) => McpConnection | undefined,
    signedIn: (connection: McpConnection) => void,
  ): Promise<Response> {
    const { host } = this.#options;
    const state = readFlowState(url.searchParams.get("state") ?? "");
    const connection = state === undefined ? undefined : find(state.serverId);
    const flow = state === undefined ? undefined : takeFlow(host, host.clock, state.serverId, state.nonce);
    if (connection === undefined || flow === undefined) {
      const authError = "This sign-in is not known here, was used already, or took too long. Begin again.";
      return answerCallback({ authSuccess: false, authError }, this.callback, url.origin);
    }
    const result = await this.#finish(connection, flow, url.searchParams);
    if (result.authSuccess) signedIn(connection);
    return answerCallback(result, this.callback, new URL(connection.record.callbackUrl ?? url).origin);
  }

  async #finish(connection: McpConnection, flow: Flow, params: URLSearchParams): Promise<McpOAuthResult> {
    const { record } = connection;
    const serverId = record.id;
    try {
      if (record.target.kind !== "http") throw new PerdureError("bad_state", "The server is not reached over HTTP.");
      const sdk = await loadClientSdk();
      const options = httpOptions(record, serverFetch(record, this.#options.rules), this.providerOf(connection, flow));
      await new sdk.StreamableHTTPClientTransport(new URL(record.target.url), options).finishAuth(params);
      return { serverId, authSuccess: true };
    } catch (thrown) {
      const authError = reasonOf(thrown);
      // One who gave up does not end what another one has.
      if (connection.state === "authenticating") {
        connection.fail(new PerdureError("not_allowed", `Signing in did not work: ${authError}`, { cause: thrown }));
      }
      return { serverId, authSuccess: false, authError };
    }
  }
}
