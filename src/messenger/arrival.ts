import type { Identity } from "../base/identity.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { Part } from "../message/types.ts";
import type { DeliveryRow } from "../store/delivery.ts";
import type { Author, FileRef, MessengerEvent } from "./channel.ts";
import { fileMark, type FileTerms, type WantedFiles, whyLeft } from "./file-intake.ts";

/** Where something came from, and what its messenger wants. Plain data: it may come from the root. */
export interface Arrival {
  readonly messenger: string;
  readonly provider: string;
  readonly event: MessengerEvent;
  /** The session that it is for. Default: the current one. */
  readonly session?: string;
  /** The conversation belongs to this place: what the agent says in it by itself goes there as well. */
  readonly bound: boolean;
  readonly label: string;
  readonly coalesceMs: number;
  readonly maxWaiting: number;
  /** What of its files is read. Default: nothing. */
  readonly files?: FileTerms;
  /** {@link Reception.may} has said yes a moment ago. */
  readonly judged?: true;
}

/** What `getMessengerContext()` gives: who said what where. */
export interface MessengerContext {
  /** The name that the app gave to the messenger. */
  readonly messenger: string;
  readonly provider: string;
  readonly thread: string;
  readonly dm: boolean;
  /** What people call the place. */
  readonly title?: string;
  readonly author: Author;
  readonly messageId: string;
  /** As in `telegram:7`: whose data the message is. */
  readonly subject: string;
  /** What was sent with it, by the names that the network knows it by. */
  readonly files?: readonly FileRef[];
}

/** The galleries of a network come in pieces, all within a second. */
const GATHER_MS = 1_000;

/** How long is waited for more of it. */
export function waitOf({ coalesceMs, event }: Arrival): number {
  return event.group === undefined ? coalesceMs : Math.max(coalesceMs, GATHER_MS);
}

/** What was said, then a part for each file. */
export function partsOf({ event, label, files }: Arrival): Part[] {
  const text = `${label}${event.text}`.trim();
  const words: Part[] = text === "" ? [] : [{ type: "text", text }];
  return [...words, ...event.files.map((file) => fileMark(file, whyLeft(file, files)))];
}

/** What of its files is fetched. @param length how many parts the message has, of which those of the files are the last */
export function wantedIn({ event, files }: Arrival, length: number): WantedFiles["wanted"] {
  const from = length - event.files.length;
  return event.files.flatMap((file, i) => (whyLeft(file, files) === undefined ? [{ part: from + i, file }] : []));
}

export function filesJson({ files }: Arrival, readyAt: number, wanted: WantedFiles["wanted"]): string {
  return JSON.stringify({
    ...{ readyAt, wanted, maxBytes: files?.maxBytes ?? 0, tries: 0, nextAt: 0 },
  } satisfies WantedFiles);
}

/** Something that was said, and no mark of a file. */
export function isWords(part: Part): boolean {
  return part.type === "text" && !part.text.startsWith("[file: ");
}

/** Whose data it is, as in `telegram:7`. */
export function subjectOf({ provider, event }: Arrival): string {
  return `${provider}:${event.author.id}`;
}

/** What a turn that answers it knows of it. */
export function messengerContextOf(arrival: Arrival): MessengerContext {
  const { messenger, provider, event } = arrival;
  const { thread, dm, title, author, messageId, files } = event;
  return {
    ...{ messenger, provider, thread, dm, author, messageId, subject: subjectOf(arrival) },
    ...(title !== undefined && { title }),
    ...(files.length > 0 && { files }),
  };
}

/** Who said it, as `authorize()` is asked. */
export function identityOf(arrival: Arrival): Identity {
  return { id: subjectOf(arrival), name: arrival.event.author.name };
}

/** Who said what where, as a delivery has it. */
export function contextOf({ context }: DeliveryRow): MessengerContext | undefined {
  const value = tryParseJson(context ?? "");
  return isRecord(value) && isRecord(value.author) ? (value as unknown as MessengerContext) : undefined;
}
