import { convertToModelMessages, streamText, toUIMessageStream, type UIMessage } from "ai";
import express from "express";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { createHost } from "perdure/node";
import { pickModel } from "../shared/model.ts";
import { buildPage } from "../shared/page.ts";

const model = pickModel(({ userText }) => `You said "${userText}". I live in an Express app.`);

class ChatAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.messages);
    const { stream } = streamText({ model, messages, abortSignal });
    return toUIMessageStream({ stream });
  }
}

const host = createHost({ agents: { ChatAgent }, dir: ".perdure/express" });

// The app as it was: its routes, its middleware, its files.
const app = express();
app.use(host.handler); // New. Before body parsers: an agent reads the body of its requests itself.
app.use(express.json());
app.get("/api/hello", (_request, response) => void response.json({ hello: "from the app's own route" }));
app.use(express.static(await buildPage(`${import.meta.dirname}/../minimal-chat`)));

// A route of the app that talks to an agent: what it is told is answered there, with or without an open page.
app.post("/api/tell/:name", async (request, response) => {
  const text: unknown = request.body?.text;
  if (typeof text !== "string") return void response.status(400).send("Send { text }.");
  const agent = host.getAgentByName(ChatAgent, request.params.name);
  const message: UIMessage = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
  response.json(await agent.saveMessages([message]));
});

const server = app.listen(Number(process.env.PORT ?? 8787), "127.0.0.1", (error) => {
  if (error) throw error;
  const address = server.address();
  if (typeof address === "object") console.log(`Open http://127.0.0.1:${address?.port}`);
});

// Express does not see WebSockets: they are the server's. What is not an agent's is refused, or handed to your own.
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
