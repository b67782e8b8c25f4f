// The same conversation in both classes that hold one: the model is a script.
import { convertToModelMessages, streamText } from "ai";
import { type AgentHost, AIChatAgent, type ChatTurnOptions, Think } from "perdure";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { type AgentOptions, newNotes, noteError, openAgent, type TestAgent } from "./open-agent.ts";

/** An agent of one of the classes under test. */
export interface EitherAgent extends TestAgent<AIChatAgent | Think> {
  readonly model: ScriptedModel;
  /** Sends a request to a path under the agent's address. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

export const CLASSES = ["AIChatAgent", "Think"] as const;

export async function openEither(
  which: (typeof CLASSES)[number],
  script: Script = ({ index }) => `answer ${index + 1}`,
  options: AgentOptions = {},
): Promise<EitherAgent> {
  const model = scriptedModel(script);
  const notes = newNotes<AIChatAgent | Think>();
  class Own extends AIChatAgent {
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
      const messages = await convertToModelMessages(this.messages);
      return streamText({ model, messages, abortSignal, maxRetries: 0, onError: () => {} }).toUIMessageStreamResponse();
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  class Steps extends Think {
    override workspaceTools = false as const;
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    override getModel() {
      return model;
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  const Talk: new (host: AgentHost) => AIChatAgent | Think = which === "Think" ? Steps : Own;
  const kit = await openAgent(Talk, notes, options);
  const own: Omit<EitherAgent, keyof TestAgent<unknown>> = {
    model,
    post: (path, body, headers = {}) =>
      fetch(kit.url + path, {
        method: "POST",
        headers,
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
  };
  return Object.assign(kit, own);
}
