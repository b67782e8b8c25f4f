// What the built-in guide answers to a prompt: a pure function, so that the same conversation always goes the same way.
import { CONTINUE_PROMPT } from "perdure";
import type { DeleteFilesTool, TimeZoneTool, WeatherTool } from "../contract.ts";
import * as say from "./guide-text.ts";
import type { ModelPrompt, PromptFile, PromptToolOutput } from "./model-types.ts";

/** One answer of the guide. The parts leave in this order. */
export interface GuideReply {
  readonly reasoning?: string;
  readonly text: string;
  readonly call?: { readonly toolName: string; readonly input: unknown };
  /** Fails with this text after everything else. */
  readonly error?: string;
}

/** The reply to what was said last; only the rest of it when a part was said before a crash. */
export function replyTo(prompt: ModelPrompt): GuideReply {
  const lastUser = prompt.findLastIndex((message) => message.role === "user" && !asksToGoOn(message));
  const since = prompt.slice(lastUser + 1);
  const lastTool = since.findLastIndex(({ role }) => role === "tool");
  const whole = lastTool === -1 ? replyToUser(prompt[lastUser]) : replyToTool(since[lastTool]);
  return withoutSaid(whole, since.slice(lastTool + 1));
}

/** After a crash the engine asks to go on with what was said, as it would ask any model. */
function asksToGoOn({ content }: Extract<ModelPrompt[number], { role: "user" }>): boolean {
  return content.some((part) => part.type === "text" && part.text === CONTINUE_PROMPT);
}

const TOPICS: readonly { readonly asked: RegExp; readonly reply: (text: string) => GuideReply }[] = [
  { asked: /approv|delet|permission|confirm/i, reply: askApproval },
  { asked: /time.?zone|what time|\bbrowser|\bclient/i, reply: askTimeZone },
  { asked: /weather|forecast|temperature|\btools?\b/i, reply: askWeather },
  { asked: /markdown|\bformat|\btable|\bcode\b|\bheading/i, reply: () => ({ text: say.MARKDOWN }) },
  {
    asked: /reason|think|thought/i,
    reply: () => ({ reasoning: say.REASONING, text: say.AFTER_REASONING }),
  },
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
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join(" ");
  if (text.trim() === "") return introduction();
  const topic = TOPICS.find(({ asked }) => asked.test(text));
  return topic?.reply(text) ?? { text: say.NOT_UNDERSTOOD };
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
  return { text: say.BEFORE_WEATHER, call: { toolName: "weather", input: { city } satisfies WeatherTool["input"] } };
}

function askApproval(): GuideReply {
  const input: DeleteFilesTool["input"] = { files: ["draft-1.md", "draft-2.md", "old-notes.txt"] };
  return { text: say.BEFORE_DELETE, call: { toolName: "deleteFiles", input } };
}

function askTimeZone(): GuideReply {
  const input: TimeZoneTool["input"] = {};
  return { text: say.BEFORE_TIME_ZONE, call: { toolName: "timeZone", input } };
}

function replyToTool(message: ModelPrompt[number] | undefined): GuideReply {
  const result = message?.role === "tool" ? message.content.findLast((part) => part.type === "tool-result") : undefined;
  if (result === undefined) return { text: say.NOTHING_TO_ADD };
  return { text: closing(result.toolName, result.output) };
}

function closing(toolName: string, output: PromptToolOutput): string {
  if (toolName === "deleteFiles" && isDenied(output)) {
    return "You said no, so nothing was deleted. The tool did not run.";
  }
  if (output.type === "execution-denied") return `The tool ${toolName} was not allowed to run.`;
  if (output.type === "error-text") return `The tool ${toolName} had no result: ${output.value}`;
  if (output.type === "error-json") return `The tool ${toolName} failed.`;
  const value = output.type === "json" ? output.value : undefined;
  switch (toolName) {
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
  return typeof field === "string" || typeof field === "number" ? String(field) : "(not told)";
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
  const isOver = rest === "" && whole.call === undefined && whole.error === undefined;
  return { ...whole, reasoning: undefined, text: isOver ? `\n\n${say.NOTHING_TO_ADD}` : rest };
}
