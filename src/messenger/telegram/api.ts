import { isRecord, tryParseJson } from "../../base/json.ts";
import { ChannelError, type ChannelErrorKind } from "../channel.ts";
import { networkApi } from "../network-api.ts";

/** The Bot API. What it throws is a ChannelError, whose words never hold the token. */
export interface TelegramApi {
  /** Calls a method, once. @param params an object, or a form with a file */
  readonly call: (method: string, params: object, signal: AbortSignal) => Promise<unknown>;
  /** The bytes of a file, by the path that `getFile` says. */
  readonly read: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
}

/** Longer than a poll that nothing comes to. Calls that are waited for are bounded by who makes them. */
const HEADERS_MS = 60_000;

/** @throws PerdureError `bad_config` for an address that is none */
export function telegramApi(token: string, apiUrl: string | undefined): TelegramApi {
  // Addresses hold the token: no words of a failure may.
  const { root, fetch, careful } = networkApi({
    ...{ network: "Telegram", address: "https://api.telegram.org", apiUrl, secret: token, headersMs: HEADERS_MS },
  });
  return {
    call: (method, params, signal) =>
      careful(method, signal, async () => {
        const sent = params instanceof FormData ? { body: params } : jsonOf(params);
        const response = await fetch(`${root}/bot${token}/${method}`, { ...sent, method: "POST", signal });
        const body = tryParseJson(await response.text());
        if (isRecord(body) && body.ok === true) return body.result;
        throw refusalOf(method, response.status, isRecord(body) ? body : {});
      }),
    read: (path, signal) =>
      careful("file", signal, async () => {
        const named = path.split("/").map(encodeURIComponent).join("/");
        const response = await fetch(`${root}/file/bot${token}/${named}`, { signal });
        if (response.ok && response.body !== null) return response.body;
        await response.body?.cancel();
        throw refusalOf("file", response.status, {});
      }),
  };
}

function jsonOf(params: object) {
  return { body: JSON.stringify(params), headers: { "content-type": "application/json" } };
}

/** Telegram tells these apart by words alone. The first that fits counts. */
const WORDS: readonly (readonly [RegExp, ChannelErrorKind])[] = [
  [/message is not modified/i, "same"],
  [/message to edit not found|message can't be edited|MESSAGE_ID_INVALID|query is too old/i, "gone"],
  [/can't parse entit|ENTITY_|ENTITIES/i, "format"],
];

function refusalOf(method: string, status: number, body: Record<string, unknown>): ChannelError {
  const description = typeof body.description === "string" ? body.description : `it answered ${status}`;
  const parameters = isRecord(body.parameters) ? body.parameters : {};
  const words = `Telegram (${method}): ${description}`;
  if (status === 429) {
    const seconds = Number(parameters.retry_after);
    return new ChannelError("rate", words, { retryAfterMs: (Number.isFinite(seconds) ? seconds : 1) * 1000 });
  }
  if (typeof parameters.migrate_to_chat_id === "number")
    return new ChannelError("refused", words, { cause: { movedTo: parameters.migrate_to_chat_id } });
  if (method === "file" && status === 404) return new ChannelError("gone", `${words}: the file is not there any more`);
  if (status === 401 || status === 404) return new ChannelError("auth", `${words}. Is the token right?`);
  if (status === 409) return new ChannelError("conflict", words);
  // Somewhere between us and what does it: it may be done.
  if (status >= 500 || status < 400) return new ChannelError("unknown", words);
  return new ChannelError(WORDS.find(([pattern]) => pattern.test(description))?.[1] ?? "refused", words);
}
