// The agents of `npm start` in a host of their own, and a client that does what the test says.
import type { UIMessage } from "ai";
import type { ServedHost } from "perdure/node";
import { onTestFinished, vi } from "vitest";
import { Assistant } from "../../examples/start/assistant.ts";
import type { ConversationsState } from "../../examples/start/contract.ts";
import { Conversations } from "../../examples/start/conversations.ts";
import { helpers } from "../../examples/start/helpers.ts";
import { Library } from "../../examples/start/library.ts";
import { logLine } from "../../examples/start/log-line.ts";
import { answerRequest } from "../../examples/start/requests.ts";
import { servedAt } from "../../examples/start/toolbox.ts";
import { type ChatClient, connectTo, textIn, user } from "../chat/client.ts";
import { connect, eventually, openHost, type Client } from "../host/open-host.ts";

/** The settings that decide which model answers; whatever the machine has set counts for nothing. */
export function settings(env: Readonly<Record<string, string>> = {}): void {
  const clean = { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", OPENAI_BASE_URL: "", PERDURE_MODEL: "" };
  for (const [name, value] of Object.entries({ ...clean, PERDURE_GUIDE_DELAY: "0", ...env })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

/** What was written to the error log. */
export function watchLog(): string[] {
  const lines: string[] = [];
  const spy = vi.spyOn(console, "error").mockImplementation((...args: unknown[]) => void lines.push(args.join(" ")));
  onTestFinished(() => spy.mockRestore());
  return lines;
}

export async function startAgents(dir?: string): Promise<ServedHost> {
  const host = await openHost({
    agents: { Conversations, Library },
    subAgents: { Assistant, ...helpers },
    log: logLine,
    fetch: (request) => answerRequest(request, { model: "test", builtIn: true }),
    ...(dir !== undefined && { dir }),
  });
  servedAt(host.url);
  return host;
}

/** One conversation with its client. */
export interface Talk extends ChatClient {
  /** Says something and waits for the end of the turn. Resolves with the answer and what it failed with. */
  ask(text: string | UIMessage): Promise<Answer>;
  /** Answers the open question of the last message, and waits for the turn that follows. */
  answer(respond: (toolCallId: string) => void): Promise<Answer>;
  /** The conversation as it is stored. */
  stored(): Promise<UIMessage[]>;
}

export interface Answer {
  readonly text: string;
  readonly error: string | undefined;
  readonly message: UIMessage | undefined;
}

const PATH = "/agents/conversations/main";

export async function openTalk(host: ServedHost, id = "first"): Promise<Talk> {
  const path = `${PATH}/sub/assistant/${id}`;
  const client = await connectTo(host.url + path);
  const stored = async () => (await (await fetch(`${host.url}${path}/get-messages`)).json()) as UIMessage[];
  let asked = 0;
  const outcome = async (requestId: string): Promise<Answer> => {
    const end = await client.done(requestId);
    const message = (await stored()).findLast(({ role }) => role === "assistant");
    return { text: textIn(message), error: end.error === true ? end.body : undefined, message };
  };
  return Object.assign(Object.create(client) as ChatClient, {
    async ask(said: string | UIMessage) {
      const requestId = `${id}-${++asked}`;
      const message = typeof said === "string" ? user(`m-${requestId}`, said) : said;
      client.request(requestId, [...(await stored()), message]);
      return outcome(requestId);
    },
    async answer(respond: (toolCallId: string) => void) {
      const before = new Set(client.frames.map(({ id: one }) => one));
      const part = (await stored()).at(-1)?.parts.findLast((one) => "toolCallId" in one);
      if (part === undefined || !("toolCallId" in part)) throw new Error("The last message asks for nothing.");
      respond(part.toolCallId);
      const next = await client.frame(
        ({ id: one, done }) => one !== undefined && !before.has(one) && done === true,
        "the end of the turn after an answer",
      );
      return outcome(next.id ?? "");
    },
    stored,
  });
}

/** A client of the list. */
export async function openList(host: ServedHost): Promise<Client & { items(): ConversationsState["items"] }> {
  const client = await connect(host, PATH);
  const items = () => (client.states().at(-1) as ConversationsState).items;
  return Object.assign(client, { items });
}

export { eventually };
