// The agents that a load driver measures: a model that costs nothing, and one tool.
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { AIChatAgent, type ChatTurnOptions, Think } from "perdure";
import { mockModel } from "./mock-model.ts";

const echo = tool({
  description: "Gives back what it is given.",
  inputSchema: jsonSchema<{ tag: string; k: number }>({ type: "object" }),
  execute: ({ tag, k }) => ({ ok: true, tag, k }),
});

/** Its own code calls the model. */
export class BenchAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
    const result = streamText({
      model: mockModel(),
      system: "You are a benchmark.",
      messages: await convertToModelMessages(this.messages),
      tools: { echo },
      stopWhen: isStepCount(100),
      abortSignal: options.abortSignal,
    });
    return result.toUIMessageStream();
  }
}

/** The same agent, with the steps run by the engine. */
export class BenchThink extends Think {
  override maxSteps = 100;
  override getModel() {
    return mockModel();
  }
  override getSystemPrompt(): string {
    return "You are a benchmark.";
  }
  override getTools() {
    return { echo };
  }
}
