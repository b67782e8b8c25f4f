// A chat agent in a process of its own, for tests that kill it. It says its words one at a time, when it is told to.
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { AIChatAgent, type ChatTurnOptions, Think } from "perdure";
import { serve } from "perdure/node";
import { manualClock, onCommand, programDir, report, type ScriptedCall, scriptedModel } from "perdure/testing";

const WORDS = ["one ", "two ", "three ", "four"];

const clock = manualClock();
const model = scriptedModel(
  (call) => {
    report({ type: "call", userText: call.userText, step: call.step });
    if (call.userText === "hang") return { hang: "before" };
    if (call.userText === "count") return { text: WORDS.slice(wordsSaid(call)), delayMs: 1 };
    if (call.step === 0) return { toolCalls: [{ toolName: call.userText, input: {}, toolCallId: "c1" }] };
    return { text: WORDS.slice(wordsSaid(call)), delayMs: 1 };
  },
  { clock },
);

/** An answer that was cut is gone on with, not begun again. */
function wordsSaid({ prompt }: ScriptedCall): number {
  const asked = prompt.findLastIndex(
    ({ role, content }) => role === "user" && !JSON.stringify(content).includes("cut off"),
  );
  const after = prompt.slice(asked + 1);
  const text = JSON.stringify(after);
  return WORDS.filter((word) => text.includes(word)).length;
}

const inputSchema = jsonSchema<object>({ type: "object" });
const tools = {
  pay: tool({
    inputSchema,
    needsApproval: true,
    execute() {
      report({ type: "paid" });
      return "paid";
    },
  }),
  place: tool({ inputSchema, outputSchema: jsonSchema<unknown>({}) }),
  work: tool({
    inputSchema,
    execute() {
      report({ type: "working" });
      return new Promise<string>(() => {});
    },
  }),
};

class TalkingAgent extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, turn: ChatTurnOptions) {
    const result = streamText({
      model,
      messages: await convertToModelMessages(this.messages),
      tools,
      stopWhen: isStepCount(5),
      maxRetries: 0,
      abortSignal: turn.abortSignal,
      onError: () => {},
    });
    return result.toUIMessageStreamResponse();
  }
}

class TalkingThink extends Think {
  override workspaceTools = false as const;
  override getModel() {
    return model;
  }
  override getSystemPrompt(): string {
    return "";
  }
  override getTools() {
    return tools;
  }
}

const Talk = process.env.PERDURE_TALK === "think" ? TalkingThink : TalkingAgent;

onCommand((command) => {
  if (command === "say") void say();
});

async function say(): Promise<void> {
  while (clock.pending() === 0) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(1);
}

const port = Number(process.env.PORT ?? 0);
const host = await serve({ agents: { Talk }, dir: programDir(), port, signals: false });
report({ type: "listening", port: host.port });
