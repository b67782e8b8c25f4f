import { createOpenAI } from "@ai-sdk/openai";
import { Think } from "perdure";
import { createCloudflareHost } from "perdure/cloudflare";
import { scriptedModel } from "perdure/testing";
import page from "./page.html";

interface Env {
  readonly OPENAI_API_KEY?: string;
}

const WORD_MS = 40;

class Assistant extends Think<Env> {
  override getModel() {
    const { OPENAI_API_KEY: apiKey } = this.env;
    if (apiKey !== undefined) return createOpenAI({ apiKey })("gpt-5-mini");
    const words = "There is no key, so these words are always the same. Reload the page while they come.".split(
      /(?<= )/,
    );
    return scriptedModel(() => ({ text: words, delayMs: WORD_MS }));
  }
}

const host = createCloudflareHost({ agents: { Assistant } });

export const { PerdureObject } = host;
export default {
  async fetch(request: Request): Promise<Response> {
    const answer = await host.route(request);
    if (answer !== undefined) return answer;
    if (new URL(request.url).pathname !== "/") return new Response("Not found", { status: 404 });
    return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
  },
};
