// A chat agent whose model follows from its prompt, for the crash matrix. The last message of the user says what
// happens: "all" is text, a tool that runs here, one that the client runs, one that a person approves, and text;
// "send" is the tool that a person approves, and text; "plain" is a plain text response; anything else is text, of which "hang" gives only the beginning in the first life,
// and "hang always" in every one.
import { appendFileSync, existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import type { ToolSet, UIMessage } from "ai";
import { AIChatAgent } from "perdure";
import type { AgentHost, ChatTurnOptions } from "perdure";
import { serve, subscribe } from "perdure/node";
import { countCalls, crashPoint, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { ScriptedCall } from "perdure/testing";
import type { Command, Look } from "./crash-drive.ts";

const dir = programDir();
const isLaterLife = existsSync(join(dir, "host.db"));
/** Slow enough that a chunk is a commit of its own. */
const DELAY_MS = 6;

/** In a later life the driver may want to look before the model goes on. */
const gate = Promise.withResolvers<void>();
if (!isLaterLife || process.env.HOLD !== "1") gate.resolve();

const ran = (name: string, toolCallId: string): string => {
  appendFileSync(join(dir, "tools"), `${name} ${toolCallId}\n`);
  return `${name} result`;
};
const inputSchema = jsonSchema<Record<string, never>>({ type: "object" });
const tools: ToolSet = {
  look: tool({ inputSchema, execute: (_, { toolCallId }) => ran("look", toolCallId) }),
  where: tool({ inputSchema, outputSchema: jsonSchema<string>({ type: "string" }) }),
  send: tool({ inputSchema, needsApproval: true, execute: (_, { toolCallId }) => ran("send", toolCallId) }),
};

/** What is said before each call, and at last. */
const PLAN: readonly { readonly text: string; readonly call?: string }[] = [
  { text: "I will look it up. ", call: "look" },
  { text: "Found it. ", call: "where" },
  { text: "You are near. ", call: "send" },
  { text: "It is sent. Done." },
];
const PLAIN = "This is plain text. Done.";

const words = (text: string): string[] => text.match(/\S+ ?/g) ?? [];

/** The text that is yet to be said, given what was. */
function rest(whole: string, said: string): string {
  return whole.startsWith(said) ? whole.slice(said.length) : whole;
}

/** What the prompt holds after the last message of the user: the text of the answer so far, and the calls with results. */
function readPrompt({ prompt }: ScriptedCall): { said: string; results: Set<string> } {
  const at = prompt.findLastIndex(({ role }) => role === "user");
  let said = "";
  const results = new Set<string>();
  for (const message of prompt.slice(at + 1)) {
    if (message.role !== "assistant" && message.role !== "tool") continue;
    for (const part of message.content) {
      if (part.type === "text") said += part.text;
      if (part.type === "tool-result" && !part.output.type.startsWith("error")) results.add(part.toolName);
    }
  }
  return { said, results };
}

const counter = countCalls({ file: join(dir, "calls") });
const model = counter.wrap(
  scriptedModel(async (call) => {
    report({ type: "asked" });
    await gate.promise;
    const { said, results } = readPrompt(call);
    if (call.userText === "send" && call.prompt.at(-1)?.role === "user")
      return { toolCalls: [{ toolName: "send", input: {} }] };
    if (call.userText !== "all") {
      const text = words(rest(`You said: ${call.userText}. Well then. Done.`, said));
      const hangs = call.userText === "hang always" || (call.userText === "hang" && !isLaterLife);
      return { text: hangs ? text.slice(0, 3) : text, hang: hangs, delayMs: DELAY_MS };
    }
    const next = PLAN.findIndex((step) => step.call === undefined || !results.has(step.call));
    const text = words(
      rest(
        PLAN.slice(0, next + 1)
          .map((step) => step.text)
          .join(""),
        said,
      ),
    );
    const toolName = PLAN[next]?.call;
    return { text, delayMs: DELAY_MS, ...(toolName !== undefined && { toolCalls: [{ toolName, input: {} }] }) };
  }),
);

const textOf = (message: UIMessage | undefined): string =>
  message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";

function plainText(said: string): ReadableStream<Uint8Array> {
  const left = words(rest(PLAIN, said));
  return new ReadableStream({
    async pull(controller) {
      await gate.promise;
      await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
      const word = left.shift();
      if (word === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(word));
    },
  });
}

const alive: Talk[] = [];

/** A turn as it was stored when the agent woke. */
interface StoredTurn {
  readonly id: string;
  readonly status: string;
  readonly cancelled: number;
}

class Talk extends AIChatAgent {
  override chatRecovery = { maxAttempts: Number(process.env.MAX_ATTEMPTS ?? 10), terminalMessage: "Given up." };

  readonly stored: () => StoredTurn[];

  constructor(port: AgentHost) {
    super(port);
    this.stored = () => port.sql<StoredTurn>("SELECT id, status, cancelled FROM perdure_turn ORDER BY seq");
  }

  override onStart(): void {
    alive.push(this);
    report({ type: "woken", turns: this.stored() });
  }

  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const { messages } = this;
    const question = messages.findLast(({ role }) => role === "user");
    if (textOf(question) === "plain") {
      const last = messages.at(-1);
      return new Response(plainText(last?.role === "assistant" ? textOf(last) : ""));
    }
    const prompt = await convertToModelMessages([...messages]);
    return streamText({
      model,
      messages: prompt,
      tools,
      stopWhen: isStepCount(20),
      abortSignal,
    }).toUIMessageStreamResponse();
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: error instanceof Error ? error.message : String(error) });
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));

const point = crashPoint();
/** With KILL_WHEN=cancelled the first life ends right after the commit that stores a stop, and before its deed. */
function onCommit(): void {
  point();
  if (process.env.KILL_WHEN !== "cancelled" || isLaterLife) return;
  const isOpen = ({ status, cancelled }: StoredTurn) => status === "running" && cancelled === 1;
  if (alive[0]?.stored().some(isOpen) === true) process.kill(process.pid, "SIGKILL");
}

// Lives are killed, so none would leave its compiled modules behind for the next.
flushCompileCache();
const host = await serve({ agents: { Talk }, dir, port: 0, signals: false, idleMs: 1e9, onCommit });

/** Tells how things stand once nothing runs, without waking anybody. */
async function look(id: number): Promise<void> {
  while (host.listAgents().length > 0 && alive.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await alive[0]?.waitUntilStable();
  const fact: Look = { type: "look", id, messages: alive[0]?.messages ?? [], calls: counter.count() };
  report(fact);
}

onCommand((message) => {
  const command = message as Command;
  if (command.type === "look") void look(command.id);
  else if (command.type === "release") gate.resolve();
});
report({ type: "ready", url: host.url });
