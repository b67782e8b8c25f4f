import { PerdureError } from "../base/error.ts";
import { isRecord } from "../base/json.ts";
import { checkNumbers, type OptionNames, refuseUnknown } from "../base/known-options.ts";
import type { HostedAgentClass } from "../port.ts";
import { WEB } from "../store/delivery.ts";
import type { DeliveryTerms } from "./courier.ts";
import type { FileTerms } from "./file-intake.ts";
import type { Author, Channel, MessengerEvent, Place } from "./channel.ts";

/** What a messenger can be made to answer. */
export type RespondTo =
  | "direct-message"
  | "mention"
  | "subscribed-thread"
  /** Presses of buttons that are not the agent's own questions. */
  | "action";

/** Which conversation something belongs to. */
export type ConversationTarget =
  | { readonly target: "self"; readonly session?: string }
  | { readonly target: "subagent"; readonly name: string; readonly agentClass?: HostedAgentClass };

/** How answers are brought to their places. */
export interface DeliveryOptions {
  /**
   * What is posted first: `text` (default), so that a phone shows something; `stand-in`, a mark that each message begins as, which is all a crash can double;
   * `whole`, nothing until the answer is whole.
   */
  readonly first?: "text" | "stand-in" | "whole";
  /** What people read behind an answer that failed. What went wrong is for the log alone. */
  readonly errorResponseText?: string;
  /** Behind an answer that was cut off as often, or for as long, as `chatRecovery` carries it on. Before that nothing is said. */
  readonly interruptedResponseText?: string;
  /** Behind an answer that somebody stopped. */
  readonly stoppedText?: string;
  /** In the place of an answer without words. An empty text: nothing is said. */
  readonly emptyResponseText?: string;
  /** Before a message that may be there twice. Default: nothing. */
  readonly repeatedText?: string;
  /** After how long a delivery that fails again and again is given up. Default 24 h. */
  readonly giveUpAfterMs?: number;
  /** Whether people see which tool works while an answer is being written. Default false. */
  readonly showTools?: boolean;
  /** A button with these words stands under an answer while it is being written, and stops it. Default: none. */
  readonly stopButton?: string;
  /** A bound of your own, below the network's, for one message. In UTF-16 units of the Markdown. */
  readonly maxChars?: number;
}

/** Which files of people the agent reads. */
export interface AttachmentOptions {
  /** Kinds that are fetched, as in `image/*` and `application/pdf`. The model must be able to read them. */
  readonly allow: readonly string[];
  /** Of one file. Default 10 MiB. */
  readonly maxBytes?: number;
}

/** What somebody wants to answer. */
export interface QuestionInfo {
  readonly toolName: string;
  readonly input: unknown;
  readonly summary?: string;
  /** Who asked for the turn that wants to make the call, as in `telegram:7`. */
  readonly askedBy?: string;
}

/** What all messengers have. */
export interface MessengerOptions {
  /** The path of the webhook behind the agent's own address. Default `/messengers/{id}/webhook`. */
  readonly path?: string;
  /** What is answered. Default `["direct-message", "mention"]`. */
  readonly respondTo?: readonly RespondTo[];
  /** Whether a place where the agent was named counts as subscribed from then on. Default true. */
  readonly subscribeOnMention?: boolean;
  /**
   * Where a conversation lives. `thread` (default): a child of the agent's class per thread; `session`: a session of the agent
   * per thread; `self`: all in one. The first answer for a thread is final.
   */
  readonly conversation?: "thread" | "self" | "session" | ((event: MessengerEvent) => ConversationTarget);
  readonly delivery?: DeliveryOptions;
  /** Who may talk: ids of authors, or a function. A bot that everybody may use spends your money. */
  readonly allow?: readonly string[] | ((event: MessengerEvent) => boolean | Promise<boolean>);
  /** What somebody is told who may not, once an hour. An empty text: nothing. */
  readonly refusedText?: string;
  /** Who may answer questions for approval. Default: who asked, where nobody else is. */
  readonly approvers?: (event: MessengerEvent, question: QuestionInfo) => boolean | Promise<boolean>;
  /** Whether other bots are answered. Two in one place can talk for ever. Default false. */
  readonly bots?: boolean;
  /** Messages of one author that come so close together are one to the agent. Default 600. */
  readonly coalesceMs?: number;
  /** How much one author may say. Default: 20 that wait, 60 an hour. */
  readonly limits?: { readonly waiting?: number; readonly perHour?: number };
  /** What stands before the words of somebody in a group. Default: the name and a colon. An empty text: nothing. */
  readonly channelSpeakerLabel?: (author: Author) => string;
  /** Which files that people send are read. Default: none; the agent is told that there is one, and what it is called. */
  readonly attachments?: AttachmentOptions;
}

/** A messenger of an agent: a channel and what the app wants of it. Made by {@link messenger}. */
export interface MessengerDefinition extends MessengerOptions {
  readonly channel: Channel;
  /** It reads what comes by itself, and needs no address that others can reach. */
  readonly listens: boolean;
  /** What is between us and the network repeats calls by itself, so that every message may be there twice. */
  readonly maybeTwice?: "always";
}

/** The messengers of an agent, by the names that the app gives them. */
export type Messengers = Readonly<Record<string, MessengerDefinition>>;

export const messengerOptionNames: OptionNames<MessengerOptions> = {
  ...{ path: true, respondTo: true, subscribeOnMention: true, conversation: true, delivery: true, allow: true },
  ...{ refusedText: true, approvers: true, bots: true, coalesceMs: true, limits: true, channelSpeakerLabel: true },
  attachments: true,
};
const deliveryNames: OptionNames<DeliveryOptions> = {
  ...{ first: true, errorResponseText: true, interruptedResponseText: true, stoppedText: true },
  ...{
    emptyResponseText: true,
    repeatedText: true,
    giveUpAfterMs: true,
    showTools: true,
    stopButton: true,
    maxChars: true,
  },
};

const ID = /^[a-z0-9][a-z0-9_-]{0,63}$/i;
const DAY_MS = 24 * 60 * 60_000;
const LEAST_CHARS = 256;
const DEFAULT_FILE_BYTES = 10 * 1024 * 1024;

/** Checks the messengers of an agent. @throws PerdureError `bad_config` for names, paths or options that cannot work */
export function defineMessengers<T extends Messengers>(messengers: T): T {
  const paths = new Map<string, string>();
  for (const [id, definition] of Object.entries(messengers)) {
    const fail = (why: string) => new PerdureError("bad_config", `The messenger "${id}" ${why}`);
    if (id === WEB) throw fail("must have another name: that one is where clients of the agent are.");
    if (!ID.test(id)) throw fail("must have a name of letters, digits, - and _.");
    if (!isRecord(definition) || !isRecord(definition.channel))
      throw fail(
        "is none. Name each one, and make it with messenger() or a network's own function: { telegram: telegramMessenger(…) }.",
      );
    const path = pathOf(id, definition);
    if (!path.startsWith("/")) throw fail("has a `path` that does not begin with /.");
    const other = paths.get(path);
    if (other !== undefined) throw fail(`has the same \`path\` as "${other}". Give one of them another.`);
    paths.set(path, id);
    refuseUnknown(definition.delivery, deliveryNames, `delivery of the messenger "${id}"`);
    refuseUnknown(definition.limits, { waiting: true, perHour: true }, `limits of the messenger "${id}"`);
    refuseUnknown(definition.attachments, { allow: true, maxBytes: true }, `attachments of the messenger "${id}"`);
    checkAttachments(definition.attachments, fail);
    checkAllow(definition, fail);
    const { conversation = "thread", approvers, channelSpeakerLabel } = definition;
    if (typeof conversation !== "function" && !["thread", "self", "session"].includes(conversation))
      throw fail('has a `conversation` that is none of "thread", "self" and "session", and no function.');
    for (const [name, value] of Object.entries({ approvers, channelSpeakerLabel }))
      if (value !== undefined && typeof value !== "function") throw fail(`has \`${name}\` that is no function.`);
    const where = `The messenger "${id}"`;
    checkNumbers(where, definition, ["coalesceMs"], { least: 0 });
    checkNumbers(where, definition.limits ?? {}, ["waiting", "perHour"]);
    checkNumbers(where, definition.delivery ?? {}, ["giveUpAfterMs"]);
    const { first, maxChars } = definition.delivery ?? {};
    if (first !== undefined && !["text", "stand-in", "whole"].includes(first))
      throw fail('has a `delivery.first` that is none of "text", "stand-in" and "whole".');
    if (maxChars !== undefined && !(maxChars >= LEAST_CHARS))
      throw fail(`has a \`delivery.maxChars\` below ${LEAST_CHARS}.`);
    for (const kind of definition.respondTo ?? [])
      if (!["direct-message", "mention", "subscribed-thread", "action"].includes(kind))
        throw fail(`cannot respond to "${kind}": use "direct-message", "mention", "subscribed-thread" or "action".`);
  }
  return messengers;
}

/** What is no list, or names people otherwise, would let nobody in, or somebody else. */
function checkAllow({ allow, channel }: MessengerDefinition, fail: (why: string) => PerdureError): void {
  if (allow === undefined || typeof allow === "function") return;
  const isId = (id: unknown) =>
    typeof id === "string" && id !== "" && !id.startsWith("@") && !id.startsWith(`${channel.provider}:`);
  if (!Array.isArray(allow) || !allow.every(isId))
    throw fail(
      'has an `allow` that is no list of ids, as text and as the network gives them: ["7"]. Names with @ do not count.',
    );
}

const KIND = /^(?:\*|[\w.+-]+)\/(?:\*|[\w.+-]+)$/;

function checkAttachments(attachments: AttachmentOptions | undefined, fail: (why: string) => PerdureError): void {
  if (attachments === undefined) return;
  const { allow, maxBytes = DEFAULT_FILE_BYTES } = attachments;
  if (!Array.isArray(allow) || !allow.every((kind) => typeof kind === "string" && KIND.test(kind)))
    throw fail('has an `attachments.allow` that is no list of kinds such as "image/*" and "application/pdf".');
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1)
    throw fail("has an `attachments.maxBytes` that is no whole number above 0.");
}

/** What of people's files is read; undefined: nothing. */
export function fileTermsOf({ attachments, channel }: MessengerDefinition): FileTerms | undefined {
  if (attachments === undefined || channel.fetchFile === undefined) return undefined;
  const { allow, maxBytes = DEFAULT_FILE_BYTES } = attachments;
  return { allow, maxBytes };
}

/** A messenger over a channel of your own. @throws PerdureError `bad_config` for options that there are not */
export function messenger(channel: Channel, options: MessengerOptions = {}): MessengerDefinition {
  refuseUnknown(options, messengerOptionNames, "messenger()");
  return { ...options, channel, listens: channel.listen !== undefined };
}

/** Where its webhook is, behind the agent's address. */
export function pathOf(id: string, { path }: Pick<MessengerOptions, "path">): string {
  return path ?? `/messengers/${id}/webhook`;
}

/** What has to be known to deliver at a messenger. */
export function termsOf({ channel, maybeTwice, delivery = {} }: MessengerDefinition): DeliveryTerms {
  const dm: Place = { thread: "", dm: true };
  return {
    provider: channel.provider,
    textLimit: Math.min(channel.limits.text, delivery.maxChars ?? Number.POSITIVE_INFINITY),
    buttonData: channel.limits.buttonData,
    dmPaceMs: channel.pace.perPlaceMs(dm),
    groupPaceMs: channel.pace.perPlaceMs({ ...dm, dm: false }),
    first: channel.limits.editable ? (delivery.first ?? "text") : "whole",
    errorResponseText: delivery.errorResponseText ?? "Something went wrong. Please try again.",
    interruptedResponseText:
      delivery.interruptedResponseText ?? "The answer was interrupted and could not be finished. Please try again.",
    stoppedText: delivery.stoppedText ?? "(stopped)",
    emptyResponseText: delivery.emptyResponseText ?? "(no answer)",
    repeats: maybeTwice === "always",
    repeatedText: delivery.repeatedText ?? "",
    giveUpAfterMs: delivery.giveUpAfterMs ?? DAY_MS,
    showTools: delivery.showTools ?? false,
    stopButton: delivery.stopButton ?? "",
    editable: channel.limits.editable,
    fileBytes: channel.sendFile === undefined ? 0 : (channel.limits.file ?? Number.POSITIVE_INFINITY),
  };
}
