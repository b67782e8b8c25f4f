// A host with one agent that has something of everything, and callers that differ in what they may do.
import { type Act, AIChatAgent, type AgentHost, callable, type Caller, type Identity } from "perdure";
import type { SessionOp } from "perdure/chat";
import { subscribe } from "perdure/node";
import { onTestFinished } from "vitest";
import { newNotes, noteError, openAgent, type TestAgent } from "../chat/open-agent.ts";
import { connect } from "../host/open-host.ts";

/** Who calls: `?as=` says it, and the host believes it. */
export type Role = "editor" | "guest" | "viewer" | "nobody" | "slow-nobody";

export interface Refused {
  readonly act: string;
  readonly code: string;
  readonly by?: string;
}

export interface Vault extends Omit<TestAgent<AIChatAgent>, "connect"> {
  /** Every refusal since the last call. */
  takeRefused(): Refused[];
  connect(role: Role, query?: string): ReturnType<typeof connect>;
  fetch(role: Role, method: string, path: string, body?: unknown, query?: string): Promise<Response>;
  /** Every row of every table, but for what helps to search. */
  dump(): Promise<string[]>;
}

export const PATH = "/agents/talk/one";

const call = (toolCallId: string, state: string) => ({
  ...{ type: "tool-danger", toolCallId, state, input: { of: toolCallId } },
  ...(state === "approval-requested" && { approval: { id: `ask-${toolCallId}` } }),
});

export interface VaultOptions {
  readonly allowSessionOp?: (caller: Caller, op: SessionOp) => boolean | Promise<boolean>;
}

/**
 * The conversation has a call that waits for a yes and one that waits for a client; a turn runs that never ends, and one
 * waits behind it. Session `other` has the same, under ids of its own.
 */
export async function openVault(options: VaultOptions = {}): Promise<Vault> {
  const notes = newNotes<AIChatAgent>();
  class Talk extends AIChatAgent {
    static override options = { allowClientState: true };
    static {
      callable(this, "look");
    }
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    // What waits is looked at too.
    override maxConcurrentTurns = 1;
    look(): string {
      return "seen";
    }
    override getCollections() {
      return { notes: {} };
    }
    override onRequest(request: Request): Response {
      return new Response(new URL(request.url).pathname.split("/").at(-1));
    }
    override onChatMessage(): Promise<never> {
      return new Promise(() => undefined);
    }
    override mayOnlyRead(identity: Identity | undefined): boolean {
      return identity?.id === "viewer";
    }
    override authorize(identity: Identity | undefined, act: Act): boolean | Promise<boolean> {
      if (identity?.id === "nobody") return act === "connect";
      if (identity?.id === "slow-nobody") return new Promise((resolve) => setImmediate(resolve, act === "connect"));
      return true;
    }
    override allowSessionOp(caller: Caller, op: SessionOp): boolean | Promise<boolean> {
      return options.allowSessionOp?.(caller, op) ?? true;
    }
    override onError(error: unknown): void {
      noteError(notes, error);
    }
  }
  const roleOf = (request: Request) => ({ identity: { id: new URL(request.url).searchParams.get("as") ?? "editor" } });
  const agent = await openAgent(Talk, notes, { host: { onBeforeConnect: roleOf, onBeforeRequest: roleOf } });
  const inside = await agent.agent();
  const other = inside.createSession({ id: "other", name: "Other" }).id;
  for (const [session, of] of [
    ["main", ""],
    [other, "-other"],
  ] as const) {
    const parts = [call(`yes${of}`, "approval-requested"), call(`run${of}`, "input-available")];
    const question = { id: `u1${of}`, role: "user", parts: [{ type: "text", text: `secret${of}` }] } as const;
    const said = [question, { id: `a1${of}`, role: "assistant", parts }];
    await inside.persistMessages(said as never, { session });
  }
  let refused: Refused[] = [];
  onTestFinished(subscribe("act:refused", ({ payload }) => void refused.push(payload)));
  const vault: Omit<Vault, keyof TestAgent<AIChatAgent>> & Pick<Vault, "connect"> = {
    takeRefused() {
      const taken = refused;
      refused = [];
      return taken;
    },
    connect: (role, query = "") => connect(agent.host, `${PATH}?as=${role}${query}`),
    fetch: (role, method, path, body, query = "") =>
      fetch(`${agent.host.url}${PATH}/${path}?as=${role}${query}`, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async dump() {
      await agent.agent();
      const tables = notes.port?.sql<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'") ?? [];
      const rows = tables
        .filter(({ name }) => !name.includes("search"))
        .flatMap(({ name }) => notes.port?.sql(`SELECT * FROM "${name}"`).map((row) => [name, row]) ?? []);
      // What helps to search is filed when somebody does, whoever that is.
      return rows.map((row) => JSON.stringify(row)).filter((row) => !row.includes('"search:'));
    },
  };
  const all = Object.defineProperties({ ...vault }, Object.getOwnPropertyDescriptors({ ...agent, ...vault })) as Vault;
  for (const [query, of] of [
    ["", ""],
    [`&_session=${other}`, "-other"],
  ] as const) {
    for (const id of ["running", "waiting"])
      await all.fetch("editor", "POST", "chat", { requestId: id + of, message: `${id}${of}` }, query);
  }
  return all;
}
