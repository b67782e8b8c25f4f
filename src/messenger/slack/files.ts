import { isRecord } from "../../base/json.ts";
import { ChannelError, type FileRef, type Sent, type SentFile } from "../channel.ts";
import type { NetworkApi } from "../network-api.ts";
import type { SlackCall } from "./api.ts";

/** Where a file is shown. */
interface Where {
  readonly channel: string;
  readonly thread_ts?: string;
}

/** Sends a file: Slack says where its bytes go, then shows it when told. Only that last call can have happened unknown to us. */
export async function sendFile(
  api: NetworkApi,
  call: SlackCall,
  { channel, thread_ts }: Where,
  { name, bytes }: SentFile,
  signal: AbortSignal,
): Promise<Sent> {
  const id = await upload(api, call, { name, bytes }, signal).catch((thrown: unknown) => {
    const isUnknown = thrown instanceof ChannelError && thrown.kind === "unknown" && !signal.aborted;
    throw isUnknown ? new ChannelError("unsent", thrown.message) : thrown;
  });
  const below = thread_ts === undefined ? {} : { thread_ts };
  await call("files.completeUploadExternal", { files: [{ id, title: name }], channel_id: channel, ...below }, signal);
  return { id };
}

async function upload(
  { fetch, careful }: NetworkApi,
  call: SlackCall,
  { name, bytes }: Pick<SentFile, "name" | "bytes">,
  signal: AbortSignal,
): Promise<string> {
  const given = await call("files.getUploadURLExternal", { filename: name, length: bytes.length }, signal);
  const { upload_url: url, file_id: id } = given;
  if (typeof url !== "string" || typeof id !== "string")
    throw new ChannelError("unsent", "Slack (files.getUploadURLExternal): it does not say where the file goes.");
  return careful("upload", signal, async () => {
    const body = bytes as Uint8Array<ArrayBuffer>;
    const headers = { "content-type": "application/octet-stream" };
    const response = await fetch(url, { method: "POST", body, headers, signal });
    await response.body?.cancel();
    if (!response.ok) throw new ChannelError("unsent", `Slack (upload): it answered ${response.status}`);
    return id;
  });
}

/** Reads a file that somebody sent. Its address is asked for each time, and kept nowhere: the bot's token opens it. */
export async function fetchFile(
  { fetch, careful }: NetworkApi,
  call: SlackCall,
  token: string,
  { id }: FileRef,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { file } = await call("files.info", { file: id }, signal);
  const url = isRecord(file) ? (file.url_private_download ?? file.url_private) : undefined;
  if (typeof url !== "string")
    throw new ChannelError("refused", "Slack (files.info): it does not say where the file is.");
  return careful("file", signal, async () => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal });
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    const { status } = response;
    const kind = status === 404 || status === 410 ? "gone" : status >= 500 ? "unknown" : "refused";
    throw new ChannelError(kind, `Slack (file): it answered ${status}`);
  });
}
