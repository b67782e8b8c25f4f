// A small authorization server that checks what it must: registration, PKCE, codes that work once, rotating refresh tokens.
import { onTestFinished } from "vitest";
import type { Gate } from "./mcp-servers.ts";
import { listen } from "./web-server.ts";

interface Grant {
  readonly clientId: string;
  readonly challenge: string;
  readonly redirectUri: string;
}

/** An authorization server, and what it has seen. */
export interface AuthServer {
  readonly origin: string;
  /** Protects an MCP server: lets requests with a good token pass, and says where to sign in. */
  readonly gate: Gate;
  readonly registered: Record<string, unknown>[];
  /** Bodies of requests for tokens, and what became of them. */
  readonly asked: { readonly grant: string; readonly ok: boolean }[];
  /** Headers that reached it. */
  readonly headers: Headers[];
  /** From now on no access token counts. */
  expire(): void;
  /** What the metadata say of the issuer, if it is not the truth. */
  issuer: string | undefined;
  /** Who comes to sign in says no. */
  denies: boolean;
}

export async function startAuth(): Promise<AuthServer> {
  const grants = new Map<string, Grant>();
  const refresh = new Set<string>();
  const valid = new Set<string>();
  const state: AuthServer = {
    origin: "",
    registered: [],
    asked: [],
    headers: [],
    issuer: undefined,
    denies: false,
    expire: () => valid.clear(),
    gate: (request) => {
      const url = new URL(request.url);
      if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
        return Response.json({ resource: `${url.origin}/mcp`, authorization_servers: [web.origin] });
      }
      const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
      if (valid.has(token)) return undefined;
      const where = `${url.origin}/.well-known/oauth-protected-resource/mcp`;
      return new Response("Who are you?", {
        status: 401,
        headers: { "www-authenticate": `Bearer resource_metadata="${where}"` },
      });
    },
  };
  const issue = () => {
    const tokens = { access_token: crypto.randomUUID(), refresh_token: crypto.randomUUID() };
    valid.add(tokens.access_token);
    refresh.add(tokens.refresh_token);
    return Response.json({ ...tokens, token_type: "Bearer", expires_in: 3600 });
  };
  const token = async (form: URLSearchParams): Promise<Response> => {
    if (form.get("grant_type") === "refresh_token") {
      return refresh.delete(form.get("refresh_token") ?? "") ? issue() : refused("invalid_grant");
    }
    const code = form.get("code") ?? "";
    const grant = grants.get(code);
    grants.delete(code);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(form.get("code_verifier") ?? ""));
    const challenge = Buffer.from(digest).toString("base64url");
    const good = grant?.challenge === challenge && grant.redirectUri === form.get("redirect_uri");
    return good ? issue() : refused("invalid_grant");
  };
  const answer = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    state.headers.push(request.headers);
    const { origin } = url;
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        return Response.json({
          issuer: state.issuer ?? origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          response_types_supported: ["code"],
          grant_types_supported: ["authorization_code", "refresh_token"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/register": {
        const client = (await request.json()) as Record<string, unknown>;
        state.registered.push(client);
        return Response.json({ ...client, client_id: `client-${state.registered.length}` }, { status: 201 });
      }
      case "/authorize": {
        const back = new URL(url.searchParams.get("redirect_uri") ?? "");
        back.searchParams.set("state", url.searchParams.get("state") ?? "");
        back.searchParams.set("iss", origin);
        if (state.denies) back.searchParams.set("error", "access_denied");
        else {
          const code = crypto.randomUUID();
          grants.set(code, {
            clientId: url.searchParams.get("client_id") ?? "",
            challenge: url.searchParams.get("code_challenge") ?? "",
            redirectUri: url.searchParams.get("redirect_uri") ?? "",
          });
          back.searchParams.set("code", code);
        }
        return Response.redirect(back, 302);
      }
      case "/token": {
        const form = new URLSearchParams(await request.text());
        const response = await token(form);
        state.asked.push({ grant: form.get("grant_type") ?? "", ok: response.ok });
        return response;
      }
      default:
        return new Response("Not found", { status: 404 });
    }
  };
  const web = await listen(answer);
  onTestFinished(() => web.stop());
  return Object.assign(state, { origin: web.origin });
}

function refused(error: string): Response {
  return Response.json({ error }, { status: 400 });
}
