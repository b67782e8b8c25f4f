import { isRecord } from "../../base/json.ts";
import type { ChatSdkAdapter, SdkMessage } from "./adapter.ts";

/** What is known of a network and of its adapter. */
export interface Network {
  /** The longest text, so that no adapter cuts it and no server refuses it. */
  readonly text: number;
  /** The longest data of a button; 0: there are none, and questions are answered in words. */
  readonly buttonData: number;
  readonly editable: boolean;
  readonly directMs: number;
  readonly groupMs: number;
  readonly perSecond: number;
  /** Whether the adapter makes a call again that failed. */
  readonly retries: boolean;
  /** Where Markdown is read as it is: what goes through an adapter's own form may come out longer, and is then cut. */
  readonly takesMarkdown: boolean;
  /** Whether the adapter may say something else than a text in Markdown says: cut where it becomes too long, or numbered anew. */
  readonly changes?: (text: string) => boolean;
  /** Answers are posted whole: the network takes many changes of one message amiss. */
  readonly whole?: true;
  /** The adapter must know who it is before it can tell a mention. */
  readonly needsSelf?: true;
  /** Changes are told like new messages. */
  readonly tellsEdits?: true;
  /** A press names another thread than that of its question; so the button says it. */
  readonly buttonsNameThread?: true;
  /** What is a card stays one: buttons go with a card that has none, or has one that cannot be pressed. */
  readonly cardsStay?: "without" | "disabled";
  /** Some words call everybody who is there. */
  readonly callsAll?: true;
  /** Answers in groups are shown under what they answer. */
  readonly replies?: true;
  /** Messages can be read back, with a mark that nobody sees. */
  readonly marks?: true;
  /** The largest file that can be sent, in bytes; 0: the adapter takes none, or would lose it. */
  readonly file: number;
  /**
   * Of what a download is made again, these are stored: ids, and addresses that only the token opens. Of a network that is not known all
   * are, unless one is an address.
   */
  readonly fileNames?: readonly string[];
  /** Reads a message again: its files have addresses that open by themselves, for a time. */
  readonly readAgain?: (adapter: ChatSdkAdapter, thread: string, messageId: string) => Promise<SdkMessage | undefined>;
  /** Where a message is read again, if that is not where it is answered. */
  readonly standsIn?: (thread: string, raw: unknown) => string;
}

const MIB = 1024 * 1024;

/** How adapters are that nobody has tried here: what is true of every network. */
const UNKNOWN: Network = {
  ...{ text: 1_500, buttonData: 0, editable: false, directMs: 1_200, groupMs: 1_200, perSecond: 10 },
  ...{ retries: true, takesMarkdown: false, callsAll: true, file: 0 },
};

const DISCORD: Network = {
  ...{ text: 2_000, buttonData: 100, editable: true, directMs: 1_100, groupMs: 1_100, perSecond: 40 },
  ...{ retries: false, takesMarkdown: true, cardsStay: "disabled", callsAll: true },
  ...{ file: 10 * MIB, fileNames: [] },
  async readAgain(adapter, thread, messageId) {
    // What was said last before the next number.
    const options = { limit: 1, direction: "backward", cursor: String(BigInt(messageId) + 1n) };
    const found = await adapter.fetchMessages?.(thread, options);
    return found?.messages.find(({ id }) => id === messageId);
  },
  standsIn(thread, raw) {
    // A thread that was made of a message does not hold it.
    const channel = isRecord(raw) ? raw.channel_id : undefined;
    return typeof channel === "string" ? [...thread.split(":").slice(0, 2), channel].join(":") : thread;
  },
};

const GITHUB: Network = {
  ...{ text: 60_000, buttonData: 0, editable: true, directMs: 1_000, groupMs: 1_000, perSecond: 1 },
  ...{ retries: false, takesMarkdown: true, whole: true, marks: true, file: 0 },
};

const SLACK: Network = {
  ...{ text: 10_000, buttonData: 255, editable: true, directMs: 1_200, groupMs: 1_200, perSecond: 20 },
  ...{
    retries: true,
    takesMarkdown: false,
    needsSelf: true,
    buttonsNameThread: true,
    cardsStay: "without",
    callsAll: true,
  },
  // With the team, the adapter would look for an installation, which one workspace has not.
  ...{ file: 1024 * MIB, fileNames: ["url"] },
};

const TELEGRAM_CHARS = 4_096;
const TELEGRAM: Network = {
  ...{ text: 3_500, buttonData: 51, editable: true, directMs: 1_100, groupMs: 3_100, perSecond: 25 },
  ...{ retries: false, takesMarkdown: false, needsSelf: true, tellsEdits: true, replies: true },
  ...{ file: 50_000_000, fileNames: ["fileId"] },
  changes: (text) => longestInMarkdownV2(text) > TELEGRAM_CHARS || !countsFromOne(text),
};

/** What is known of the network of an adapter. */
export function networkOf(adapter: ChatSdkAdapter): Network {
  switch (adapter.name) {
    case "discord":
      return { ...DISCORD, file: discordIsItself(adapter) ? DISCORD.file : 0 };
    case "github":
      return GITHUB;
    case "slack":
      return { ...SLACK, retries: !slackIsPatient(adapter) };
    case "telegram":
      return TELEGRAM;
    default:
      return UNKNOWN;
  }
}

/** Whether its client was told to call once, and to say when it was too fast. */
function slackIsPatient(adapter: object): boolean {
  const options = "webClientOptions" in adapter && isRecord(adapter.webClientOptions) ? adapter.webClientOptions : {};
  const retries = isRecord(options.retryConfig) ? options.retryConfig.retries : undefined;
  return retries === 0 && options.rejectRateLimitedCalls === true;
}

/** Whether it calls Discord's own server: files go there in any case. */
function discordIsItself(adapter: object): boolean {
  return "apiBaseUrl" in adapter && String(adapter.apiBaseUrl).startsWith("https://discord.com/");
}

const SPECIAL = /[_*[\]()~`>#+\-=|{}.!\\]/g;

/** No text becomes longer than this where everything that means something is written with a backslash. Tables become columns. */
function longestInMarkdownV2(text: string): number {
  const lines = text.split("\n");
  const rows = lines.filter((line) => line.includes("|"));
  const widest = Math.max(0, ...rows.map((row) => row.length));
  return text.length + (text.match(SPECIAL)?.length ?? 0) + 2 * lines.length + 2 * rows.length * widest;
}

/** Whether lists are numbered as they would be if they were counted: where one goes on from another message, it is not. */
function countsFromOne(text: string): boolean {
  let last = 0;
  for (const [, digits] of text.matchAll(/^\s*(\d+)[.)]\s/gm)) {
    const number = Number(digits);
    if (number !== last + 1 && number !== 1) return false;
    last = number;
  }
  return true;
}
