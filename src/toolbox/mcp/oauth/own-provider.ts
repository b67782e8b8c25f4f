/*
 * Of our own, with the shapes of the SDK: agents have these in their types, and who uses no MCP has no SDK.
 */

/** What an authorization server gave, as it is stored. */
export interface McpOAuthTokens {
  access_token: string;
  token_type: string;
  refresh_token?: string | undefined;
  id_token?: string | undefined;
  expires_in?: number | undefined;
  scope?: string | undefined;
  /** The authorization server that they are from. */
  issuer?: string | undefined;
}

/** How an authorization server knows this app. */
export interface McpOAuthRegistration {
  client_id: string;
  client_secret?: string | undefined;
  client_id_issued_at?: number | undefined;
  client_secret_expires_at?: number | undefined;
  issuer?: string | undefined;
}

/** What this app says of itself when it registers. */
export interface McpOAuthMetadata {
  redirect_uris: string[];
  client_name?: string | undefined;
  grant_types?: string[] | undefined;
  response_types?: string[] | undefined;
  scope?: string | undefined;
  token_endpoint_auth_method?: string | undefined;
}

/** Which authorization server is meant. */
export interface McpOAuthIssuer {
  readonly issuer: string;
}

/**
 * What an app may decide about signing in at a server: who it is, where tokens are kept, how it proves itself. The rest is done
 * as usual; the person's way there and back is never the app's. An MCP SDK `OAuthClientProvider` is one.
 */
export interface McpOAuthProvider {
  readonly redirectUrl?: string | URL | undefined;
  readonly clientMetadataUrl?: string | undefined;
  readonly clientMetadata?: McpOAuthMetadata;
  /** Adds what proves who the app is to a request for tokens. */
  addClientAuthentication?(
    headers: Headers,
    params: URLSearchParams,
    url: string | URL,
    metadata?: never,
  ): void | Promise<void>;
  clientInformation?(at?: McpOAuthIssuer): McpOAuthRegistration | undefined | Promise<McpOAuthRegistration | undefined>;
  saveClientInformation?(registration: McpOAuthRegistration, at?: McpOAuthIssuer): void | Promise<void>;
  tokens?(at?: McpOAuthIssuer): McpOAuthTokens | undefined | Promise<McpOAuthTokens | undefined>;
  saveTokens?(tokens: McpOAuthTokens, at?: McpOAuthIssuer): void | Promise<void>;
  /** A `DpopSession` of the SDK: tokens that are bound to a key. */
  dpop?(): object | undefined | Promise<object | undefined>;
  validateResourceURL?(serverUrl: string | URL, resource?: string): Promise<URL | undefined>;
  scopeForRefresh?(tokens: McpOAuthTokens): string | undefined | Promise<string | undefined>;
  invalidateCredentials?(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): void | Promise<void>;
  prepareTokenRequest?(scope?: string): URLSearchParams | undefined | Promise<URLSearchParams | undefined>;
}
