import { convertToModelMessages, streamText, toUIMessageStream } from "ai";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { serve } from "perdure/node";
import { pickModel } from "../shared/model.ts";
import { bundleModule } from "../shared/page.ts";

const model = pickModel(({ userText }) => `You said "${userText}". This page has no framework and no build.`);

class ChatAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.messages);
    const { stream } = streamText({ model, messages, abortSignal });
    return toUIMessageStream({ stream });
  }
}

const client = await bundleModule("perdure/client");

const { url } = await serve({
  agents: { ChatAgent },
  dir: ".perdure/plain-html",
  port: Number(process.env.PORT ?? 8787),
  assets: `${import.meta.dirname}/page`,
  fetch: ({ url: asked }) => (asked.endsWith("/perdure-client.js") ? javaScript(client) : undefined),
});
console.log(`Open ${url}`);

function javaScript(body: string): Response {
  return new Response(body, { headers: { "content-type": "text/javascript" } });
}
