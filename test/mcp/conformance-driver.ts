// Does with our client what a scenario of the conformance suite asks for.
import { ClientCredentialsProvider, PrivateKeyJwtProvider } from "@modelcontextprotocol/client";
import type { McpClientManager } from "../../src/toolbox/mcp/client/manager.ts";
import type { AddMcpServerOptions, AddMcpServerResult, McpOAuthClient } from "../../src/toolbox/mcp/client/types.ts";
import type { McpOAuthProvider } from "../../src/toolbox/mcp/oauth/own-provider.ts";
import { openMcp } from "./agent.ts";

/** What the suite hands to a client. */
export interface Scenario {
  readonly scenario: string;
  readonly url: string;
  readonly context: Readonly<Record<string, string>>;
}

/** How often a person would sign in before they give up. */
const MAX_SIGN_INS = 3;

export async function drive({ scenario, url, context }: Scenario): Promise<void> {
  const own = ownProvider(scenario, context);
  const agent = await openMcp(own === undefined ? {} : { createOAuthProvider: () => own });
  const mcp = await agent.mcp();
  mcp.configureElicitationHandlers({ form: () => ({ action: "accept", content: {} }) });
  try {
    await use(mcp, scenario, url, { callbackHost: agent.url(), oauth: clientOf(scenario, context) });
  } finally {
    for (const { id } of mcp.listServers()) await mcp.removeServer(id);
  }
}

async function use(mcp: McpClientManager, scenario: string, url: string, options: AddMcpServerOptions): Promise<void> {
  // Its metadata name another issuer than the place where they were found.
  const transport = { skipIssuerMetadataValidation: scenario === "auth/2025-03-26-oauth-metadata-backcompat" };
  const added = await mcp.addServer(scenario, url, { ...options, transport });
  await signIn(mcp, added);
  const { id: serverId } = added;
  for (const { name } of mcp.listTools()) {
    const given = name === "add_numbers" ? { a: 5, b: 3 } : {};
    for (let round = 0; round < MAX_SIGN_INS; round++) {
      try {
        await mcp.callTool({ serverId, name, arguments: given });
        break;
      } catch (thrown) {
        const { authUrl } = mcp.listServers()[0] ?? {};
        if (authUrl === null || authUrl === undefined) throw thrown;
        await signIn(mcp, { id: serverId, state: "authenticating", authUrl });
      }
    }
  }
}

/** Goes where a person would be sent, and comes back through the agent's own address. */
async function signIn(mcp: McpClientManager, added: AddMcpServerResult): Promise<void> {
  if (added.state === "ready") return;
  const asked = await fetch(added.authUrl, { redirect: "manual" });
  // A body that nobody reads keeps its connection, and the suite waits for all of them to end.
  await asked.text();
  const back = asked.headers.get("location");
  if (back === null) throw new Error(`The authorization server answered ${asked.status}.`);
  const answer = await fetch(back, { redirect: "manual" });
  const said = await answer.text();
  if (answer.status !== 302) throw new Error(said);
  await mcp.waitForConnections();
}

function clientOf(scenario: string, context: Scenario["context"]): McpOAuthClient {
  if (scenario === "auth/basic-cimd") {
    return { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
  }
  if (scenario !== "auth/pre-registration") return {};
  return { clientId: context.client_id ?? "", clientSecret: context.client_secret ?? "" };
}

/** For programs that sign in as themselves: the package's own providers. */
function ownProvider(scenario: string, context: Scenario["context"]): McpOAuthProvider | undefined {
  const clientId = context.client_id ?? "";
  if (scenario === "auth/client-credentials-basic") {
    return new ClientCredentialsProvider({ clientId, clientSecret: context.client_secret ?? "" });
  }
  if (scenario !== "auth/client-credentials-jwt") return undefined;
  const privateKey = context.private_key_pem ?? "";
  return new PrivateKeyJwtProvider({ clientId, privateKey, algorithm: context.signing_algorithm ?? "ES256" });
}
