import { scriptedText } from "perdure/testing";
import type { TextCall, TextTurn } from "perdure/testing";

// Models that play a script, so that this runs without a provider. Any text adapter of TanStack AI can take their place.

/** What one of the tools gives, or why it could not. */
interface ToolResult {
  readonly response?: string;
  readonly found?: readonly string[];
  readonly edition?: number;
  readonly error?: string;
}

const WORD_MS = Number(process.env.WORD_MS ?? 60);

export const plannerModel = scriptedText((call) => {
  const subject = call.userText.replace(/^a story about /i, "");
  const [research, story] = resultsOf(call);
  if (/fail/i.test(subject)) return { error: "the model's provider is on strike" };
  if (research === undefined) return says(`First I find out about ${subject}. `, "researcher", { message: subject });
  if (story === undefined) return says("Now somebody must write it. ", "writer", { message: textOf(research) });
  return says(`Your story about ${subject} is done. ${textOf(story)}`);
});

export const researcherModel = scriptedText((call) => {
  const [archive] = resultsOf(call);
  if (archive === undefined) return says("Let me look that up. ", "searchArchive", { subject: call.userText });
  return says(`About ${call.userText} I found: ${archive.found?.join("; ")}.`);
});

export const writerModel = scriptedText((call) => {
  const [printed] = resultsOf(call);
  const text = `What we know: ${call.userText} The rest is to be found out, and we will.`;
  if (printed === undefined) return says(`${text} `, "publish", { headline: "What nobody asked before", text });
  if (printed.edition === undefined) return says("It will not be printed: somebody said no.");
  return says(`It is in edition ${printed.edition}.`);
});

/** Says it word by word, and calls a tool then. */
function says(text: string, tool?: string, input?: unknown): TextTurn {
  const words = { text: text.split(/(?<= )/), delayMs: WORD_MS };
  return tool === undefined ? words : { ...words, toolCalls: [{ name: tool, input }] };
}

/** What the tools have given in this answer. */
function resultsOf({ messages, step }: TextCall): ToolResult[] {
  const since = step === 0 ? [] : messages.slice(-step);
  return since.flatMap(({ role, content }) =>
    role === "tool" && typeof content === "string" ? [JSON.parse(content) as ToolResult] : [],
  );
}

/** What another agent has answered. */
function textOf({ response, error = "nothing" }: ToolResult): string {
  return response ?? error;
}
