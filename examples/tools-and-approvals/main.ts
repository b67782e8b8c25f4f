import { convertToModelMessages, isStepCount, streamText, toUIMessageStream } from "ai";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { serve } from "perdure/node";
import { buildPage } from "../shared/page.ts";
import { model } from "./model.ts";
import { approvals, tools } from "./tools.ts";

class ToolAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const { stream } = streamText({
      model,
      instructions: "You help with the user's files. Use your tools.",
      messages: await convertToModelMessages(this.messages, { tools }),
      tools,
      toolApproval: approvals,
      stopWhen: isStepCount(10),
      abortSignal,
    });
    return toUIMessageStream({ stream, tools });
  }
}

const { url } = await serve({
  agents: { ToolAgent },
  dir: ".perdure/tools-and-approvals",
  port: Number(process.env.PORT ?? 8787),
  assets: await buildPage(import.meta.dirname),
});
console.log(`Open ${url}`);
