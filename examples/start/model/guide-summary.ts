// What the guide writes when the engine asks it, as it would ask any model, for a summary of what was said.
import type { GuideReply } from "./guide-reply.ts";
import type { ModelPrompt } from "./model-types.ts";

const CONVERSATION = /<conversation>\n([\s\S]*)\n<\/conversation>/;
const PRIOR = /<prior-summary>\n([\s\S]*?)\n<\/prior-summary>/;
const FOCUS = /<focus>\n([\s\S]*?)\n<\/focus>/;
const ASKED = /<message id="[^"]*" role="user">\n([\s\S]*?)\n<\/message>/g;
const MAX_LINES = 12;
const MAX_LINE = 90;

/** The summary that a prompt asks for; undefined when it asks for something else. */
export function summaryFor(prompt: ModelPrompt): GuideReply | undefined {
  const [first, second, ...more] = prompt;
  if (first?.role !== "system" || second?.role !== "user" || more.length > 0) return undefined;
  const text = second.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const said = CONVERSATION.exec(text)?.[1];
  const prior = PRIOR.exec(text)?.[1];
  if (said === undefined && prior === undefined) return undefined;
  const asked = [...(said ?? "").matchAll(ASKED)].map(([, words = ""]) => oneLine(words));
  const before = (prior ?? "").split("\n").filter((line) => line.startsWith("- "));
  const lines = [...before, ...asked.map((words) => `- “${words}”`)];
  const left = lines.length - MAX_LINES;
  const focus = FOCUS.exec(text)?.[1];
  const parts = [
    "## What was talked about",
    "The user asked the built-in guide, a script, to show things, and it showed them:",
    ...(left > 0 ? [`- (${left} older questions)`] : []),
    ...lines.slice(-MAX_LINES),
    ...(focus === undefined ? [] : ["## To keep", `- ${oneLine(focus)}`]),
  ];
  return { text: parts.join("\n"), isQuick: true };
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE - 1)}…` : line;
}
