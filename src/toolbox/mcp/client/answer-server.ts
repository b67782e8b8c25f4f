import type { Client, ClientCapabilities, CreateMessageResult } from "@modelcontextprotocol/client";
import type { McpClientFeatures, McpElicitation } from "./elicitation.ts";

/** What is offered to servers. */
export function capabilitiesOf(features: McpClientFeatures): ClientCapabilities {
  const { form, url } = features.elicitation ?? {};
  return {
    ...((form !== undefined || url !== undefined) && {
      elicitation: {
        ...(form !== undefined && { form: { applyDefaults: true } }),
        ...(url !== undefined && { url: {} }),
      },
    }),
    ...(features.sampling !== undefined && { sampling: {} }),
    ...(features.roots !== undefined && { roots: {} }),
  };
}

/** Hands requests of a server to what was configured. Handlers that were added later than the connection are asked too. */
export function answerServer(client: Client, serverId: string, features: () => McpClientFeatures): void {
  const now = features();
  if (now.elicitation?.form !== undefined || now.elicitation?.url !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const request = params as unknown as McpElicitation;
      const handler = features().elicitation?.[request.mode === "url" ? "url" : "form"];
      if (handler === undefined) return { action: "decline" };
      const { action, content } = await handler(request, serverId);
      return { action, ...(content !== undefined && { content: { ...content } }) };
    });
  }
  const { sampling, roots } = now;
  if (sampling !== undefined) {
    client.setRequestHandler("sampling/createMessage", async ({ params }) => {
      const answer = await sampling(params, serverId);
      // The package checks it before it is sent.
      return answer as CreateMessageResult;
    });
  }
  if (roots !== undefined) {
    client.setRequestHandler("roots/list", () => ({ roots: roots().map((root) => ({ ...root })) }));
  }
}
