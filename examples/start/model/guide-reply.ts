// What the built-in guide answers to a prompt: a pure function, so that the same conversation always goes the same way.
import { CONTINUE_PROMPT } from "perdure/chat";
import type { DeleteFilesTool, ResearchTool, TidyUpTool, TimeZoneTool, WeatherTool } from "../contract.ts";
import * as say from "./guide-text.ts";
import { summaryFor } from "./guide-summary.ts";
import type { ModelPrompt, PromptFile, PromptToolOutput } from "./model-types.ts";

/** One answer of the guide. The parts leave in this order. */
export interface GuideReply {
  readonly reasoning?: string;
  readonly text: string;
  /** Made at once, side by side. */
  readonly calls?: readonly { readonly toolName: string; readonly input: unknown }[];
  /** Fails with this text after everything else. */
  readonly error?: string;
  /** Said line by line, not word by word. */
  readonly isQuick?: boolean;
}

/** The reply to what was said last; only the rest of it when a part was said before a crash. */
export function replyTo(prompt: ModelPrompt): GuideReply {
  return summaryFor(prompt) ?? replyWith(prompt, replyToUser, replyToTools);
}

/** The same for any script: one answer to what the user said, one to what tools brought. */
export function replyWith(
  prompt: ModelPrompt,
  toUser: (message: ModelPrompt[number] | undefined) => GuideReply,
  toTools: (since: ModelPrompt) => GuideReply,
): GuideReply {
  const lastUser = prompt.findLastIndex((message) => message.role === "user" && !asksToGoOn(message));
  const since = prompt.slice(lastUser + 1);
  const lastTool = since.findLastIndex(({ role }) => role === "tool");
  const whole = lastTool === -1 ? toUser(prompt[lastUser]) : toTools(since.slice(0, lastTool + 1));
  return withoutSaid(whole, since.slice(lastTool + 1));
}

/** What the user said last. */
export function lastAsked(prompt: ModelPrompt): string {
  return textOf(prompt.findLast((message) => message.role === "user" && !asksToGoOn(message)));
}

/** After a crash the engine asks to go on with what was said, as it would ask any model. */
function asksToGoOn({ content }: Extract<ModelPrompt[number], { role: "user" }>): boolean {
  return content.some((part) => part.type === "text" && part.text === CONTINUE_PROMPT);
}

/** An agent that worked in the background reports in a message of its own. */
const REPORT = /^The background work of (.+?) (is done|failed|was stopped|was given up)/;

const TOPICS: readonly { readonly asked: RegExp; readonly reply: (text: string) => GuideReply }[] = [
  { asked: REPORT, reply: hearReport },
  { asked: /background|meanwhile/i, reply: askLater },
  { asked: /\bhelpers?\b|sub.?agents?|\bteam\b/i, reply: askHelpers },
  { asked: /\bresearch/i, reply: (text) => ({ text: say.BEFORE_RESEARCH, calls: [research(text)] }) },
  { asked: /approv|delet|permission|confirm/i, reply: askApproval },
  { asked: /time.?zone|what time|\bbrowser|\bclient/i, reply: askTimeZone },
  { asked: /weather|forecast|temperature|\btools?\b/i, reply: askWeather },
  { asked: /markdown|\bformat|\btable|\bcode\b|\bheading/i, reply: () => ({ text: say.MARKDOWN }) },
  {
    asked: /reason|think|thought/i,
    reply: () => ({ reasoning: say.REASONING, text: say.AFTER_REASONING }),
  },
  {
    asked: /compact|summar|\bcontext\b|\bwindow|\btokens?\b/i,
    reply: () => ({ text: say.fillingAnswer(), isQuick: true }),
  },
  { asked: /\bversions?\b|\bbranch/i, reply: () => ({ text: say.VERSIONS }) },
  { asked: /\bremember\b|\bpin(?:s|ned)?\b|forget/i, reply: () => ({ text: say.PINS }) },
  { asked: /\bsearch|\bfind\b/i, reply: () => ({ text: say.SEARCH }) },
  { asked: /\blong|stream|story|essay/i, reply: () => ({ text: say.longAnswer() }) },
  { asked: /error|fail|crash|broken|wrong/i, reply: () => ({ text: say.BEFORE_ERROR, error: say.ERROR }) },
  {
    asked: /attach|upload|file|picture|image/i,
    reply: () => ({ text: "Send me one: use the button beside the text field, or drop a file there." }),
  },
  { asked: /^\W*(hello|hi|hey|help|start)\b|what can you|who are you|what are you/i, reply: introduction },
];

function replyToUser(message: ModelPrompt[number] | undefined): GuideReply {
  if (message?.role !== "user") return introduction();
  const files = message.content.filter((part) => part.type === "file");
  if (files.length > 0) return { text: describeFiles(files) };
  const text = textOf(message);
  if (text.trim() === "") return introduction();
  const topic = TOPICS.find(({ asked }) => asked.test(text));
  return topic?.reply(text) ?? { text: say.NOT_UNDERSTOOD };
}

/** What a user wrote. */
export function textOf(message: ModelPrompt[number] | undefined): string {
  if (message?.role !== "user") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join(" ");
}

function introduction(): GuideReply {
  return { text: say.INTRODUCTION };
}

const DEFAULT_CITY = "Lisbon";
const MAX_CITY = 40;

function askWeather(text: string): GuideReply {
  const found = /\bin\s+(\p{L}[\p{L} .'’-]*)/iu.exec(text) ?? /\b(?:at|for)\s+(\p{L}[\p{L} .'’-]*)/iu.exec(text);
  const named = found?.[1]?.replace(/\s+(?:like|today|tomorrow|now|right now|please)\b.*$/i, "").replace(/[ .]+$/, "");
  const city = named === undefined || named === "" ? DEFAULT_CITY : named.slice(0, MAX_CITY);
  return { text: say.BEFORE_WEATHER, calls: [{ toolName: "weather", input: { city } satisfies WeatherTool["input"] }] };
}

function askApproval(): GuideReply {
  const input: DeleteFilesTool["input"] = { files: ["draft-1.md", "draft-2.md", "old-notes.txt"] };
  return { text: say.BEFORE_DELETE, calls: [{ toolName: "deleteFiles", input }] };
}

function askTimeZone(): GuideReply {
  const input: TimeZoneTool["input"] = {};
  return { text: say.BEFORE_TIME_ZONE, calls: [{ toolName: "timeZone", input }] };
}

const DEFAULT_TOPIC = "durable agents";
const MAX_TOPIC = 60;

function research(text: string, toolName: "research" | "researchLater" = "research") {
  const found = /\bresearch(?:ing|es)?\s+(?:on\s+|about\s+)?(\p{L}[^.?!\n]*)/iu.exec(text)?.[1];
  const named = found?.replace(/\s*\b(?:in the background|meanwhile|please)\b.*$/i, "").trim();
  const topic = named === undefined || named === "" ? DEFAULT_TOPIC : named.slice(0, MAX_TOPIC);
  return { toolName, input: { topic } satisfies ResearchTool["input"] };
}

function askHelpers(text: string): GuideReply {
  const folder: TidyUpTool["input"] = { folder: "drafts" };
  return { text: say.BEFORE_HELPERS, calls: [research(text), { toolName: "tidyUp", input: folder }] };
}

function askLater(text: string): GuideReply {
  return { text: say.BEFORE_LATER, calls: [research(text, "researchLater")] };
}

function hearReport(text: string): GuideReply {
  const [, name = "", how = ""] = REPORT.exec(text) ?? [];
  return { text: how === "is done" ? say.afterReport(name) : `${name} ${how}, so there is nothing to tell.` };
}

/** The results of the calls that were made last; several when they ran side by side. */
function replyToTools(since: ModelPrompt): GuideReply {
  const first = since.findLastIndex(({ role }) => role === "assistant") + 1;
  const results = since
    .slice(first)
    .flatMap((message) => (message.role === "tool" ? message.content : []))
    .filter((part) => part.type === "tool-result");
  if (results.length === 0) return { text: say.NOTHING_TO_ADD };
  return { text: results.map(({ toolName, output }) => closing(toolName, output)).join("\n\n") };
}

/** What is said when the tool has ended. */
export function closing(toolName: string, output: PromptToolOutput): string {
  if (toolName === "deleteFiles" && isDenied(output)) {
    return "You said no, so nothing was deleted. The tool did not run.";
  }
  if (output.type === "execution-denied") return `The tool ${toolName} was not allowed to run.`;
  if (output.type === "error-text") return `The tool ${toolName} had no result: ${output.value}`;
  if (output.type === "error-json") return `The tool ${toolName} failed.`;
  const value = output.type === "json" ? output.value : undefined;
  if (of(value, "ok") === "false") return `${inTheText(toolName)} brought nothing: ${of(value, "error")}`;
  switch (toolName) {
    case "research":
      return "The researcher is back. What it found is in its card above; open it to see all that it did, or to ask it more.";
    case "tidyUp":
      return `The tidier is back. ${output.type === "text" ? output.value : ""}`;
    case "researchLater":
      return "It is at work now, and I am free again: ask me something else. I tell you when it is done.";
    case "weather":
      return `In ${of(value, "city")} it is ${of(value, "celsius")} °C, ${of(value, "sky")}, with ${of(value, "windKmh")} km/h of wind. (The numbers are made up from the name of the city; the tool call is real.)`;
    case "deleteFiles":
      return `You approved, so the tool ran and deleted ${code(of(value, "deleted"))}. (It only pretends: no file was touched.)`;
    case "timeZone":
      return `Your browser says that you are in the time zone **${of(value, "timeZone")}**, where it is ${of(value, "localTime")}.`;
    default:
      return `The tool ${toolName} is done.`;
  }
}

/**
 * Whether the user said no. The SDK hands a denial to a model as an error whose text is the user's reason, if one was
 * given; a call that a crash cut off is an error too, and says so.
 */
function isDenied(output: PromptToolOutput): boolean {
  if (output.type === "error-text") return !/interrupted/i.test(output.value);
  return output.type === "execution-denied";
}

/** A field of a result as text. Results come from clients too, so nothing is sure. */
function of(value: unknown, name: string): string {
  const field: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  if (Array.isArray(field)) return field.map(String).join(", ");
  return ["string", "number", "boolean"].includes(typeof field) ? String(field) : "(not told)";
}

function inTheText(toolName: string): string {
  return toolName === "tidyUp" ? "The tidier" : "The researcher";
}

function describeFiles(files: readonly PromptFile[]): string {
  const lines = files.map(({ filename, mediaType, data }) => {
    const size = sizeOf(data);
    return `- ${code(filename ?? "a file without a name")}: ${mediaType}${size === undefined ? "" : `, ${inWords(size)}`}`;
  });
  const count = files.length === 1 ? "one file" : `${files.length} files`;
  return `You sent me ${count}:\n\n${lines.join("\n")}\n\nI am a script and cannot look inside, but a real model would be given all of it.`;
}

function sizeOf(data: PromptFile["data"]): number | undefined {
  if (data.type === "text") return new TextEncoder().encode(data.text).length;
  if (data.type !== "data") return undefined;
  if (typeof data.data !== "string") return data.data.length;
  return Math.floor((data.data.replace(/=+$/, "").length * 3) / 4);
}

const KILO = 1000;

function inWords(bytes: number): string {
  if (bytes < KILO) return `${bytes} bytes`;
  return bytes < KILO * KILO ? `${(bytes / KILO).toFixed(1)} kB` : `${(bytes / KILO / KILO).toFixed(1)} MB`;
}

/** As code, so that nothing in a name is taken for markdown. */
function code(text: string): string {
  return `\`${text.replaceAll("`", "'").replaceAll(/\s+/g, " ")}\``;
}

/** Goes on behind what an earlier attempt said, if that is the beginning of the same reply. */
function withoutSaid(whole: GuideReply, since: ModelPrompt): GuideReply {
  let text = "";
  let thought = false;
  for (const message of since) {
    if (message.role !== "assistant") continue;
    for (const part of message.content) {
      if (part.type === "text") text += part.text;
      if (part.type === "reasoning") thought = true;
    }
  }
  if (text === "" && !thought) return whole;
  if (!whole.text.startsWith(text)) return whole;
  const rest = whole.text.slice(text.length);
  const isOver = rest === "" && whole.calls === undefined && whole.error === undefined;
  return { ...whole, reasoning: undefined, text: isOver ? `\n\n${say.NOTHING_TO_ADD}` : rest };
}
