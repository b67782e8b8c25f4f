import { isRecord, tryParseJson } from "../../base/json.ts";
import { ChannelError, type FileRef, type SentFile } from "../channel.ts";
import type { ChatSdkAdapter, SdkAttachment, SdkMessage } from "./adapter.ts";
import type { Network } from "./networks.ts";

/** Whose files they are. */
interface Source {
  readonly adapter: ChatSdkAdapter;
  readonly network: Network;
}

/**
 * What a file is found by in every life, as the id of a {@link FileRef}: what the adapter makes its download of, or the message that it
 * is in, which is read again. Addresses that open by themselves are in neither.
 */
type Found =
  | { readonly by: Readonly<Record<string, string>> }
  | { readonly thread: string; readonly message: string; readonly at: number };

/** The files of a message. One without an id cannot be fetched. */
export function fileRefs(source: Source, thread: string, message: SdkMessage): FileRef[] {
  return message.attachments.map((attachment, at) => {
    const { mimeType = "application/octet-stream", size } = attachment;
    const found = foundBy(source, thread, message, attachment, at);
    return {
      ...{ name: nameOf(attachment), mediaType: mimeType },
      ...(found !== undefined && { id: JSON.stringify(found) }),
      ...(typeof size === "number" && { size }),
    };
  });
}

/** The bytes of a file, by its id alone. The adapter reads it whole, within its own bound. @throws ChannelError when it is not there */
export async function fetchAttachment(
  source: Source,
  file: FileRef,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const attachment = await attachmentOf(source, file);
  signal.throwIfAborted();
  if (attachment?.fetchData === undefined)
    throw new ChannelError("gone", `${source.adapter.name}: the file is not there any more.`);
  const data = await attachment.fetchData();
  return new Blob([data instanceof ArrayBuffer ? data : Uint8Array.from(data)]).stream();
}

/** A message that is a file and nothing else. */
export function postableFile({ name, mediaType, bytes }: SentFile): object {
  return { raw: "", files: [{ data: Uint8Array.from(bytes).buffer, filename: name, mimeType: mediaType }] };
}

/**
 * What a file that was posted is known by. Slack's adapter makes a name up, and tells that of the file beside it; one that tells none is
 * known by our key, as a file is never changed.
 */
export function postedFileId({ id, raw }: { readonly id?: string; readonly raw?: unknown }, key: string): string {
  const [own] = isRecord(raw) && Array.isArray(raw.uploadedFileIds) ? (raw.uploadedFileIds as unknown[]) : [];
  return typeof own === "string" ? own : id || key;
}

function foundBy(
  { adapter, network }: Source,
  thread: string,
  { id: message, raw }: SdkMessage,
  { fetchData, fetchMetadata = {} }: SdkAttachment,
  at: number,
): Found | undefined {
  if (fetchData === undefined) return undefined;
  const names = network.fileNames ?? Object.keys(fetchMetadata);
  const by = Object.fromEntries(Object.entries(fetchMetadata).filter(([name]) => names.includes(name)));
  const isOpen = (value: string) => (network.fileNames === undefined ? isAddress(value) : opensByItself(value));
  const isKept = Object.keys(by).length > 0 && !Object.values(by).some(isOpen);
  if (isKept && adapter.rehydrateAttachment !== undefined) return { by };
  if (network.readAgain === undefined && adapter.fetchMessage === undefined) return undefined;
  return { thread: network.standsIn?.(thread, raw) ?? thread, message, at };
}

async function attachmentOf(
  { adapter, network }: Source,
  { id, name, mediaType }: FileRef,
): Promise<SdkAttachment | undefined> {
  const found = tryParseJson(id ?? "") as Found | undefined;
  if (!isRecord(found)) return undefined;
  if ("by" in found) {
    const type = /^(image|video|audio)\//.exec(mediaType)?.[1] ?? "file";
    return adapter.rehydrateAttachment?.({ type, name, mimeType: mediaType, fetchMetadata: { ...found.by } });
  }
  const { thread, message, at } = found;
  const again = await (network.readAgain?.(adapter, thread, message) ?? adapter.fetchMessage?.(thread, message));
  const attachments = again?.attachments ?? [];
  // Others may have been taken out of the message.
  return [...attachments.slice(at, at + 1), ...attachments].find((one) => nameOf(one) === name);
}

function nameOf({ name, type }: SdkAttachment): string {
  return name ?? type ?? "file";
}

function isAddress(value: string): boolean {
  return /^[a-z][\w+.-]*:\/\//i.test(value);
}

/** Whether an address has room for a secret: those that are asked for with a token have none. */
function opensByItself(value: string): boolean {
  return isAddress(value) && (!URL.canParse(value) || /[?#@]/.test(value));
}
