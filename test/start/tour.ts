// The tour of all tools, driven over the wire by somebody who says yes to everything.
import { setTimeout } from "node:timers/promises";
import type { UIMessage } from "ai";
import type { ServedHost } from "perdure/node";
import { connectTo } from "../chat/client.ts";
import { type Answer, type Talk, eventually } from "./talk.ts";

export const TALK = "/agents/conversations/main/sub/assistant/first";

/** The answer to a question that comes sooner is taken for one to the question before it. */
const SECOND_QUESTION_MS = 450;
const MOST_QUESTIONS = 20;

type Part = UIMessage["parts"][number];
export type CallPart = Extract<Part, { toolCallId: string }>;

/** What was asked on the way: the tool, and why. */
export interface Question {
  readonly tool: string;
  readonly reason: string | undefined;
}

export function callsOf(message: UIMessage | undefined): CallPart[] {
  return message?.parts.filter((part): part is CallPart => "toolCallId" in part) ?? [];
}

/** `tool-read` is `read`. */
export function nameOf(part: CallPart): string {
  return part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
}

/** Asks, and answers what is asked back until nothing is. */
export async function tour(
  host: ServedHost,
  talk: Talk,
  text: string,
): Promise<{ readonly answer: Answer; readonly questions: readonly Question[] }> {
  const questions: Question[] = [];
  void answerTidier(host, talk);
  let answer = await talk.ask(text);
  for (let round = 0; round < MOST_QUESTIONS; round++) {
    const open = callsOf(answer.message).findLast(({ state }) => !state.startsWith("output"));
    if (open?.state === "approval-requested") {
      questions.push({ tool: nameOf(open), reason: open.approval.requestReason });
      if (questions.length > 1) await setTimeout(SECOND_QUESTION_MS);
      answer = await talk.answer((id) => talk.approve(id, true));
    } else if (open?.state === "input-available") {
      answer = await talk.answer((id) => talk.result(id, { timeZone: "Asia/Tokyo", localTime: "9:00" }));
    } else return { answer, questions };
  }
  throw new Error("It asks and asks.");
}

interface RunFrame {
  readonly event: { readonly runId: string; readonly agentType?: string };
}

/** The helper that tidies up asks in a conversation of its own. */
async function answerTidier(host: ServedHost, talk: Talk): Promise<void> {
  for (;;) {
    const events = (talk.ofType("agent-tool-event") as unknown as RunFrame[]).map(({ event }) => event);
    const run = events.find(({ agentType }) => agentType === "Tidier");
    if (run !== undefined) {
      const path = `${host.url}${TALK}/sub/tidier/${run.runId}`;
      const messages = (await (await fetch(`${path}/get-messages`)).json()) as UIMessage[];
      const open = callsOf(messages.at(-1)).find(({ state }) => state === "approval-requested");
      if (open !== undefined) return (await connectTo(path)).approve(open.toolCallId, true);
    }
    await setTimeout(20);
  }
}

export { eventually };
