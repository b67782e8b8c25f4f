import type { GenerateTextOnFinishCallback, ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import type { ChatAnswer } from "../turn/engine/by-stream.ts";
import type { AgentEnv, AgentHost } from "../port.ts";
import { waitForMcp } from "../parts/mcp.ts";
import { ChatAgent } from "./chat-agent.ts";
import { parts } from "../parts/part.ts";
import type { ChatTurnOptions } from "../turn/step/config.ts";

const noop: GenerateTextOnFinishCallback<ToolSet> = () => {};

/**
 * An agent that holds a conversation. Write {@link AIChatAgent.onChatMessage} and return what your model streams; messages,
 * streams, tool calls and approvals are stored, sent to every client, and survive restarts.
 */
export class AIChatAgent<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
> extends ChatAgent<Env, State, Props> {
  constructor(host: AgentHost) {
    super(host);
    const { chat, mcp } = this[parts];
    chat.answerer = {
      respond: async (options) => {
        if (mcp.used !== undefined) await waitForMcp(mcp.used, this.waitForMcpConnections);
        return chat.as(() => this.onChatMessage(noop, options), options.requestId, options.identity);
      },
    };
  }

  /** Whether turns wait for MCP servers that are being connected, and for how long (default 10 s). */
  waitForMcpConnections: boolean | { readonly timeout?: number } = true;

  /**
   * Answers the conversation in `this.messages`: return what `streamText` returns, a streaming Response
   * (`toUIMessageStreamResponse()`), a plain text one, the chunks (`toUIMessageStream()`), or nothing for no answer. A throw ends
   * the turn: the user reads a plain sentence, or what a PerdureError says. Pass `options.abortSignal` on, so that stop stops the
   * model.
   */
  onChatMessage(
    _onFinish: GenerateTextOnFinishCallback<ToolSet>,
    _options: ChatTurnOptions,
  ): ChatAnswer | undefined | Promise<ChatAnswer | undefined> {
    throw new PerdureError(
      "bad_config",
      `${this.constructor.name} must override onChatMessage() and return an answer.`,
    );
  }
}
