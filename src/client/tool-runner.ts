import type { UIDataTypes, UITools } from "ai";
import { errorText } from "../base/error.ts";
import { toolName, toolParts, type UIMessage } from "../message/types.ts";
import type { ChatTool } from "./chat-request.ts";

type ToolsOf<M extends UIMessage> = M extends UIMessage<unknown, UIDataTypes, infer Tools> ? Tools : UITools;

/** A call that waits for somebody here to run it. With the type of the messages, its name tells its input. */
export type ToolCall<M extends UIMessage = UIMessage> = {
  [K in keyof ToolsOf<M> & string]: {
    readonly toolCallId: string;
    readonly toolName: K;
    readonly input: ToolsOf<M>[K]["input"];
  };
}[keyof ToolsOf<M> & string];

/** What a call gave, or how it failed. */
export interface ToolOutput {
  readonly toolCallId: string;
  readonly toolName?: string;
  readonly output?: unknown;
  readonly state?: "output-available" | "output-error";
  readonly errorText?: string;
}

/** Runs a tool here. May be slow; what it throws becomes the call's error. Calls it does not know it leaves alone. */
export type OnToolCall<M extends UIMessage = UIMessage> = (options: {
  readonly toolCall: ToolCall<M>;
  readonly addToolOutput: (output: ToolOutput) => void;
}) => void | Promise<void>;

/** Who runs tools here. */
export interface ToolHandlers<M extends UIMessage = UIMessage> {
  readonly onToolCall?: OnToolCall<M>;
  readonly tools?: Readonly<Record<string, ChatTool>>;
}

/** Runs the calls of a finished answer that wait for a client, each one once. */
export class ToolRunner {
  readonly #answer: (output: ToolOutput) => void;
  readonly #changed: () => void;
  readonly #known = new Set<string>();
  #running = 0;

  /** @param changed `isRunning` may be another. */
  constructor(answer: (output: ToolOutput) => void, changed: () => void) {
    this.#answer = answer;
    this.#changed = changed;
  }

  get isRunning(): boolean {
    return this.#running > 0;
  }

  run(message: UIMessage, { onToolCall, tools }: ToolHandlers): void {
    for (const part of toolParts(message)) {
      const { toolCallId, input } = part;
      if (part.state !== "input-available" || part.providerExecuted === true || this.#known.has(toolCallId)) continue;
      const toolCall = { toolCallId, toolName: toolName(part), input };
      const execute = tools?.[toolCall.toolName]?.execute as ((input: unknown) => unknown) | undefined;
      if (onToolCall !== undefined) {
        this.#known.add(toolCallId);
        void this.#watch(toolCall, async () => onToolCall({ toolCall, addToolOutput: this.#answer }));
      } else if (execute !== undefined) {
        this.#known.add(toolCallId);
        void this.#watch(toolCall, async () => this.#answer({ toolCallId, output: await execute(input) }));
      }
    }
  }

  async #watch({ toolCallId }: ToolCall, work: () => Promise<void>): Promise<void> {
    this.#running++;
    this.#changed();
    try {
      await work();
    } catch (error) {
      this.#answer({ toolCallId, state: "output-error", errorText: errorText(error) });
    } finally {
      this.#running--;
      this.#changed();
    }
  }
}
