import type { Client, ClientCapabilities, CreateMessageResult } from "@modelcontextprotocol/client";

/** What a server asks a person for. `requestedSchema` is there for a form, `url` for a page. */
export interface McpElicitation {
  readonly mode?: string;
  readonly message: string;
  readonly requestedSchema?: Readonly<Record<string, unknown>>;
  readonly url?: string;
  readonly elicitationId?: string;
}

/** What the person said. */
export interface McpElicitationAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** Asks a person for a server during a call, within its time; a restart ends it. The server gets what it throws. */
export type ElicitationHandler = (
  request: McpElicitation,
  serverId: string,
) => McpElicitationAnswer | Promise<McpElicitationAnswer>;

/** Which ways of asking there are. Only these are offered to servers. */
export interface ElicitationHandlers {
  /** Fields to fill in. What the person leaves out gets the defaults that the server gave. */
  readonly form?: ElicitationHandler;
  /** A page to visit. Show the address to the person; never open it by yourself. */
  readonly url?: ElicitationHandler;
}

/** What a server may ask of this client besides. Nothing of it is offered unless it is given. */
export interface McpClientFeatures {
  readonly elicitation?: ElicitationHandlers;
  /** Answers a server that wants to ask a model. It costs your tokens: look at what is asked. */
  readonly sampling?: (request: Readonly<Record<string, unknown>>, serverId: string) => unknown;
  /** The places that servers are told of. */
  readonly roots?: () => readonly { readonly uri: string; readonly name?: string }[];
}

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
