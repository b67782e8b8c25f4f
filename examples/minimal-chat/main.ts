import { convertToModelMessages, streamText, toUIMessageStream } from "ai";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { serve } from "perdure/node";
import { pickModel } from "../shared/model.ts";
import { buildPage } from "../shared/page.ts";

const model = pickModel(({ userText }) => `You said "${userText}". I am a script; with an API key a model answers.`);

class ChatAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.messages);
    const { stream } = streamText({ model, messages, abortSignal });
    return toUIMessageStream({ stream });
  }
}

const { url } = await serve({
  agents: { ChatAgent },
  dir: ".perdure/minimal-chat",
  port: Number(process.env.PORT ?? 8787),
  assets: await buildPage(import.meta.dirname),
});
console.log(`Open ${url}`);
