// What the page and the agents agree on. No code of either side: both import it.
import type { UIMessage } from "ai";

/** Where the list of conversations is: `/agents/conversations/main`. */
export const LIST_AGENT = "conversations";
export const LIST_NAME = "main";
/** A conversation is a child of the list: `sub: [{ agent: CONVERSATION_AGENT, name: id }]`. */
export const CONVERSATION_AGENT = "assistant";

/** Longer titles are cut, with an ellipsis, whether they come from a first message or from the user. */
export const MAX_TITLE = 60;
/** What a fresh conversation is called when its first message has no words, a picture for example. */
export const UNTITLED = "New conversation";
/** The list keeps so many; to begin another one has to be removed. */
export const MAX_CONVERSATIONS = 500;

/** One line of the list. */
export interface ConversationItem {
  readonly id: string;
  readonly title: string;
  /** When something last happened in it, in milliseconds since the epoch. */
  readonly updatedAt: number;
  /** The user gave the title: it is never overwritten. */
  readonly named: boolean;
  /** The messenger that it is held at, as people call it. */
  readonly from?: string;
}

/** The state of the list, newest first. A conversation is in it once something was said. */
export interface ConversationsState {
  readonly items: readonly ConversationItem[];
}

/** What the page can call at the list. A failed call rejects with a message that can be shown. */
export interface ConversationsApi {
  /** A fresh id. The list shows it once something was said. */
  create(): Promise<string>;
  /** Gives a title that stays. Fails for an empty title and for an id that is not in the list. */
  rename(id: string, title: string): Promise<void>;
  /** Deletes the conversation with everything it kept. Nothing happens when it is gone already. */
  remove(id: string): Promise<void>;
}

/** Tool of the server: takes a second or two, so that its running state can be seen. */
export interface WeatherTool {
  input: { city: string };
  output: { city: string; celsius: number; sky: string; windKmh: number };
}

/** Tool of the server that asks first (`needsApproval`). It only pretends: no file is touched. */
export interface DeleteFilesTool {
  input: { files: string[] };
  output: { deleted: string[] };
}

/** Tool of the page: it has no code on the server, the page answers it. */
export interface TimeZoneTool {
  input: Record<string, never>;
  output: { timeZone: string; localTime: string };
}

/** Tools that are agents: a helper does the work, in a conversation of its own. Both wait for it. */
export interface ResearchTool {
  input: { topic: string };
  output: unknown;
}
export interface TidyUpTool {
  input: { folder: string };
  output: unknown;
}

/** The same helper, but nobody waits: the assistant is told when it is done. */
export type ResearchLaterTool = ResearchTool;

/** Part types in a message are `tool-` and one of these names. */
// A type alias, because the SDK wants an index signature that interfaces do not have.
export type AssistantTools = {
  weather: WeatherTool;
  deleteFiles: DeleteFilesTool;
  timeZone: TimeZoneTool;
  research: ResearchTool;
  researchLater: ResearchLaterTool;
  tidyUp: TidyUpTool;
};

/** The tools that are agents. */
export const HELPER_TOOLS: ReadonlySet<string> = new Set<keyof AssistantTools>(["research", "researchLater", "tidyUp"]);

/** Something of a conversation that was brought to a messenger, or has to be. */
export interface DeliveryItem {
  readonly id: string;
  readonly kind: "answer" | "question" | "notice";
  /** `held`: it waits for a person. */
  readonly state: "open" | "held" | "done" | "failed";
  /** How many messages it is there. */
  readonly parts: number;
  /** Why the last try failed, and when the next one is. */
  readonly error?: string;
  readonly nextAt?: number;
  readonly maybeTwice: boolean;
  readonly createdAt: number;
}

/** What the page can call at a conversation. */
export interface AssistantApi {
  /** What was brought to a messenger, and what waits: the newest first. */
  deliveries(): Promise<readonly DeliveryItem[]>;
  /** Tries one that failed again. */
  retryDelivery(id: string): boolean | Promise<boolean>;
  /** Forgets one that has ended. */
  forgetDelivery(id: string): boolean | Promise<boolean>;
  /** Stops one helper, and whatever it has others do. Nothing happens when it has ended. */
  stopRun(runId: string): Promise<void>;
}

/** A message of a conversation. Attachments are file parts whose `url` is a data URL. */
export type AssistantMessage = UIMessage<unknown, Record<string, unknown>, AssistantTools>;

/** All attachments of one message together, in bytes. A stored message has to fit into a row. */
export const MAX_ATTACHMENT_BYTES = 1_000_000;

/** What `GET /info` answers. */
export interface Info {
  /** What to show as the one who answers, "Built-in guide" or a model's name. */
  readonly model: string;
  /** No key is set: the built-in script answers. */
  readonly builtIn: boolean;
}

/** Things to try in an empty conversation. The built-in guide knows each of them. */
export const SUGGESTIONS = [
  { label: "What can you do?", text: "What can you do?" },
  { label: "Call a tool", text: "What is the weather in Lisbon?" },
  { label: "Use every tool", text: "Show me every tool" },
  { label: "Run code", text: "Show me code that calls tools" },
  { label: "Watch helpers at work", text: "Show me helpers" },
  { label: "Ask for approval", text: "Show me an approval" },
  { label: "Work in the background", text: "Research tea in the background" },
  { label: "Use a tool of the page", text: "Which time zone am I in?" },
  { label: "Show formatted text", text: "Show me some markdown" },
  { label: "Think aloud", text: "Show me reasoning" },
  { label: "Stream a long answer", text: "Give me a long answer" },
  { label: "Fill the model's window", text: "Show me compaction" },
  { label: "Have more than one answer", text: "Show me versions" },
  { label: "Fail on purpose", text: "Show me an error" },
] as const;
