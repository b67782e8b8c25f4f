import { serve } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import { convertToModelMessages, streamText, toUIMessageStream, type UIMessage } from "ai";
import { Hono } from "hono";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { createHost } from "perdure/node";
import { pickModel } from "../shared/model.ts";
import { buildPage } from "../shared/page.ts";

const model = pickModel(({ userText }) => `You said "${userText}". I live in a Hono app.`);

class ChatAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.messages);
    const { stream } = streamText({ model, messages, abortSignal });
    return toUIMessageStream({ stream });
  }
}

const host = createHost({ agents: { ChatAgent }, dir: ".perdure/hono" });

// The app as it was: its routes, its middleware, its files.
const app = new Hono();
app.all("/agents/*", (c) => host.fetch(c.req.raw)); // New.
app.get("/api/hello", (c) => c.json({ hello: "from the app's own route" }));
app.get("*", serveStatic({ root: await buildPage(`${import.meta.dirname}/../minimal-chat`) }));

// A route of the app that talks to an agent: what it is told is answered there, with or without an open page.
app.post("/api/tell/:name", async (c) => {
  const { text } = await c.req.json<{ text?: unknown }>();
  if (typeof text !== "string") return c.text("Send { text }.", 400);
  const agent = host.getAgentByName(ChatAgent, c.req.param("name"));
  const message: UIMessage = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
  return c.json(await agent.saveMessages([message]));
});

const port = Number(process.env.PORT ?? 8787);
const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, (info) => {
  console.log(`Open http://127.0.0.1:${info.port}`);
});

// Hono does not see WebSockets: they are the server's. What is not an agent's is refused, or handed to your own.
server.on("upgrade", async (request, socket, head) => {
  if (await host.upgrade(request, socket, head)) return;
  socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
});

// Tells clients to come back, and lets running work settle. Killed instead, nothing is lost either.
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    server.close();
    await host.stop();
    process.exit();
  });
}
