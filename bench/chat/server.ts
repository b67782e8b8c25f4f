// The server that a load driver measures: one chat agent with a model that costs nothing.
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { AIChatAgent, type ChatTurnOptions, Think } from "perdure";
import { serve } from "perdure/node";
import { mockModel } from "./mock-model.ts";

const echo = tool({
  description: "Gives back what it is given.",
  inputSchema: jsonSchema<{ tag: string; k: number }>({ type: "object" }),
  execute: ({ tag, k }) => ({ ok: true, tag, k }),
});

class BenchAgent extends AIChatAgent {
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
class BenchThink extends Think {
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

const host = await serve({
  agents: { BenchAgent, BenchThink },
  dir: process.env.STATE_DIR ?? ".perdure/bench",
  port: Number(process.env.PORT ?? 8787),
  fetch: () => new Response("ok"),
});
console.log(`Listening on ${host.url}`);
