import { jsonSchema, tool, type ToolSet } from "ai";
import { Think } from "perdure";
import { createHost, memoryStorage, subscribe } from "perdure/node";
import { scriptedModel, type ScriptedReply } from "perdure/testing";
import type { Conversation, PlannedCall } from "./conversation.ts";
import { Meter, Recall } from "./meter.ts";
import { refusal, summariser, type SummariserKind } from "./summarisers.ts";

/** In the requests of so many last turns, facts are looked for. */
const LAST_TURNS = 3;
const MOST_STEPS = 40;

/** What came of one conversation. */
export interface Played {
  readonly turns: number;
  readonly lost: number;
  readonly summaries: number;
  readonly prunes: number;
  readonly model: Meter;
  readonly writer: Meter;
  readonly recall: Recall;
}

/** Holds a conversation with a real `Think` on a real host, whose model has the window, and looks at each request. */
export async function play(conversation: Conversation, window: number, kind: SummariserKind): Promise<Played> {
  const [model, writer, recall] = [new Meter(), new Meter(), new Recall()];
  const made = new Map<string, PlannedCall>();
  const { turns, facts } = conversation;
  let [turn, step, lost, summaries, prunes] = [0, 0, 0, 0, 0];

  const answers = scriptedModel((call): ScriptedReply => {
    const { tokens, cached } = model.request(call, summaries + prunes);
    if (tokens > window) return { error: refusal(400, `This model's maximum context length is ${window} tokens.`) };
    model.stale(call, made);
    if (turn >= turns.length - LAST_TURNS) recall.look(call, facts, turn);
    const usage = { inputTokens: tokens, cachedInputTokens: cached };
    const next = turns[turn]?.calls[step++];
    if (next === undefined) {
      const text = turns[turn]?.answer ?? "";
      model.answered(text);
      return { text, usage };
    }
    const toolCallId = `call-${turn}-${step}`;
    made.set(toolCallId, next);
    model.answered(JSON.stringify(next.input));
    return { toolCalls: [{ toolCallId, toolName: next.tool, input: next.input }], usage };
  });
  const writes = summariser(kind, conversation, writer);

  class Bench extends Think {
    override workspaceTools = false as const;
    override titles = false;
    override maxSteps = MOST_STEPS;
    override contextOverflow = { background: false };
    override modelLimits = { "scripted/*": { window } };
    override getModel() {
      return answers;
    }
    override getCompactionModel() {
      return writes;
    }
    override getSystemPrompt() {
      return conversation.system;
    }
    override getTools() {
      return toolsOf(conversation, made);
    }
  }

  const heard = subscribe("chat:context:compacted", ({ payload }) => {
    if (payload.kind === "prune") prunes++;
    else summaries++;
  });
  const host = createHost({ agents: { Bench }, storage: memoryStorage(), idleMs: 1e9 });
  try {
    const agent = host.getAgentByName(Bench, "one");
    for (; turn < turns.length; turn++) {
      step = 0;
      const text = turns[turn]?.ask ?? "";
      const input = { id: `user-${turn}`, role: "user" as const, parts: [{ type: "text" as const, text }] };
      const { status } = await agent.runTurn({ input });
      if (status !== "completed") lost++;
    }
  } finally {
    heard();
    await host.stop();
  }
  return { turns: turns.length, lost, summaries, prunes, model, writer, recall };
}

function toolsOf({ tools }: Conversation, made: ReadonlyMap<string, PlannedCall>): ToolSet {
  const entries = Object.entries(tools).map(([name, description]) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<Record<string, unknown>>({ type: "object" }),
      execute: (_input, { toolCallId }) => made.get(toolCallId)?.output,
    }),
  ]);
  return Object.fromEntries(entries) as ToolSet;
}
