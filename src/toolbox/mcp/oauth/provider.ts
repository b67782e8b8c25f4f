import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { PerdureError } from "../../../base/error.ts";
import type { Clock } from "../../../base/time.ts";
import { isRecord } from "../../../base/json.ts";
import type { Sql } from "../../../port.ts";
import { deleteCell, readCell, writeCell } from "../../../store/cell.ts";
import { type McpServerRecord, oauthKey } from "../client/server-record.ts";
import type { McpOAuthProvider } from "./own-provider.ts";
import { type Flow, newFlowState, readFlowState, saveFlow } from "./flows.ts";

/** What is stored of a sign-in at one server. */
interface Credentials {
  readonly client?: StoredOAuthClientInformation;
  readonly tokens?: StoredOAuthTokens;
  readonly discovery?: OAuthDiscoveryState;
}

/** What a {@link CellOAuthProvider} works for. */
interface ProviderOptions {
  readonly db: Sql;
  readonly clock: Clock;
  readonly record: McpServerRecord;
  readonly clientName: string;
  /** The sign-in that is being ended. */
  readonly flow?: Flow | undefined;
  readonly own?: McpOAuthProvider | undefined;
  /** A person has to go there. */
  readonly redirect: (authUrl: string) => void;
}

/** What an app may decide in our place: its methods stand over ours. */
const OWN_METHODS = [
  ...(["clientInformation", "saveClientInformation", "tokens", "saveTokens", "addClientAuthentication"] as const),
  ...(["dpop", "prepareTokenRequest", "scopeForRefresh", "validateResourceURL"] as const),
];

/** Keeps what signing in at a server needs in the agent's own cells, with a row for each person who is on the way. */
export class CellOAuthProvider implements OAuthClientProvider {
  readonly #options: ProviderOptions;
  #verifier: string | undefined;
  readonly clientMetadataUrl?: string;

  constructor(options: ProviderOptions) {
    this.#options = options;
    const { record, own = {} } = options;
    const url = own.clientMetadataUrl ?? record.options.oauth?.clientMetadataUrl;
    if (url !== undefined) this.clientMetadataUrl = url;
    // Only what is there: the package looks whether a method exists.
    for (const name of OWN_METHODS) {
      const method: unknown = own[name];
      if (typeof method === "function") Object.defineProperty(this, name, { value: method.bind(own) });
    }
  }

  get redirectUrl(): string | URL | undefined {
    const { record, own } = this.#options;
    return own !== undefined && "redirectUrl" in own ? own.redirectUrl : record.callbackUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { record, clientName, own } = this.#options;
    if (own?.clientMetadata !== undefined) return own.clientMetadata;
    const { oauth } = record.options;
    const redirect = this.redirectUrl;
    return {
      client_name: oauth?.clientName ?? clientName,
      redirect_uris: redirect === undefined ? [] : [String(redirect)],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      ...(oauth?.clientSecret === undefined && { token_endpoint_auth_method: "none" }),
      ...(oauth?.scope !== undefined && { scope: oauth.scope }),
    };
  }

  state(): string {
    return newFlowState(this.#options.record.id);
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    const { clientId, clientSecret, issuer } = this.#options.record.options.oauth ?? {};
    const stored = this.#read().client;
    // The first server that it was shown to is the only one that ever sees it.
    if (clientId === undefined || (stored?.client_id === clientId && issuer === undefined)) return stored;
    return {
      client_id: clientId,
      ...(clientSecret !== undefined && { client_secret: clientSecret }),
      ...(issuer !== undefined && { issuer }),
    };
  }

  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#write({ client });
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#read().tokens;
  }

  saveTokens(tokens: StoredOAuthTokens): void {
    this.#write({ tokens });
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    const verifier = this.#options.flow?.verifier;
    if (verifier !== undefined) return verifier;
    throw new PerdureError("bad_state", "There is no sign-in to complete. Begin it again.");
  }

  redirectToAuthorization(url: URL): void {
    const { db, clock, record, redirect } = this.#options;
    const state = readFlowState(url.searchParams.get("state") ?? "");
    if (this.#verifier === undefined || state === undefined) {
      throw new PerdureError("bad_state", "The sign-in has no state to come back with. Begin it again.");
    }
    // Apps put it into links and redirects.
    if (!["https:", "http:"].includes(url.protocol)) {
      throw new PerdureError("not_allowed", `The MCP server wants people to sign in at a ${url.protocol} address.`);
    }
    saveFlow(db, {
      serverId: record.id,
      nonce: state.nonce,
      verifier: this.#verifier,
      authUrl: url.href,
      startedAt: clock.now(),
    });
    redirect(url.href);
  }

  saveDiscoveryState(discovery: OAuthDiscoveryState): void {
    this.#write({ discovery });
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#read().discovery;
  }

  async invalidateCredentials(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): Promise<void> {
    const { db, record, own } = this.#options;
    await own?.invalidateCredentials?.(scope);
    if (scope === "verifier") return;
    const { [scope as keyof Credentials]: _gone, ...rest } = this.#read();
    if (scope === "all") deleteCell(db, oauthKey(record.id));
    else writeCell(db, oauthKey(record.id), JSON.stringify(rest));
  }

  #read(): Credentials {
    const { db, record } = this.#options;
    const text = readCell(db, oauthKey(record.id));
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return isRecord(value) ? (value as Credentials) : {};
  }

  #write(change: Credentials): void {
    const { db, record } = this.#options;
    writeCell(db, oauthKey(record.id), JSON.stringify({ ...this.#read(), ...change }));
  }
}
