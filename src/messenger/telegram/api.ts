import { errorText, PerdureError } from "../../base/error.ts";
import { isRecord, tryParseJson } from "../../base/json.ts";
import { createGuardedFetch } from "../../toolbox/egress/guarded-fetch.ts";
import { ChannelError, type ChannelErrorKind } from "../channel.ts";

/** The Bot API. What it throws is a ChannelError, whose words never hold the token. */
export interface TelegramApi {
  /** Calls a method, once. @param params an object, or a form with a file */
  readonly call: (method: string, params: object, signal: AbortSignal) => Promise<unknown>;
  /** The bytes of a file, by the path that `getFile` says. */
  readonly read: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
}

/** Longer than a poll that nothing comes to. Calls that are waited for are bounded by who makes them. */
const HEADERS_MS = 60_000;
/** Failures before a connection was made: what was asked for has surely not been done. */
const NEVER_LEFT =
  /could not be resolved|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CERT_|has no address/;

/** @throws PerdureError `bad_config` for an address that is none */
export function telegramApi(token: string, apiUrl: string | undefined): TelegramApi {
  const base = apiUrl ?? "https://api.telegram.org";
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol))
    throw new PerdureError("bad_config", "`apiUrl` must be the http or https address of a Bot API server.");
  const { origin, protocol, hostname, port, pathname } = new URL(base);
  const place = `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
  const guarded = createGuardedFetch({
    ...{ allow: [origin], redirects: 0, headersMs: HEADERS_MS },
    // Whoever names a server of their own may have it in their own network.
    ...(apiUrl !== undefined && { allowPrivate: [place] }),
  });
  const root = `${origin}${pathname.replace(/\/$/, "")}`;
  /** Addresses hold the token: no words of a failure may. */
  const careful = async <T>(method: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof ChannelError) throw thrown;
      if (signal.aborted) throw signal.reason;
      const words = errorText(thrown).replaceAll(token, "…");
      const isUnsent = PerdureError.is(thrown, "not_allowed") || NEVER_LEFT.test(words);
      throw new ChannelError(isUnsent ? "unsent" : "unknown", `Telegram (${method}): ${words}`);
    }
  };
  return {
    call: (method, params, signal) =>
      careful(method, signal, async () => {
        const sent = params instanceof FormData ? { body: params } : jsonOf(params);
        const response = await guarded(`${root}/bot${token}/${method}`, { ...sent, method: "POST", signal });
        const body = tryParseJson(await response.text());
        if (isRecord(body) && body.ok === true) return body.result;
        throw refusalOf(method, response.status, isRecord(body) ? body : {});
      }),
    read: (path, signal) =>
      careful("file", signal, async () => {
        const named = path.split("/").map(encodeURIComponent).join("/");
        const response = await guarded(`${root}/file/bot${token}/${named}`, { signal });
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
