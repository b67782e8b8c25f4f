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

/**
 * Asks a person on behalf of a server, in the middle of a call. May take as long as the call may; a restart ends the call.
 * What it throws is told to the server as an error.
 */
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
