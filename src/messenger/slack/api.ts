import { isRecord, tryParseJson } from "../../base/json.ts";
import { ChannelError, type ChannelErrorKind } from "../channel.ts";
import { type NetworkApi, networkApi } from "../network-api.ts";

/** Calls a method of the Web API, once. @throws ChannelError, whose words never hold the token */
export type SlackCall = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => Promise<Readonly<Record<string, unknown>>>;

/** How long any one call may take, with its answer. */
const CALL_MS = 30_000;

/** The way to Slack's servers. @throws PerdureError `bad_config` for an address that is none */
export function slackServers(token: string, apiUrl: string | undefined): NetworkApi {
  const address = "https://slack.com/api";
  const more = ["https://files.slack.com"];
  return networkApi({ network: "Slack", address, more, apiUrl, secret: token, headersMs: CALL_MS });
}

/** Calls with a token. */
export function slackCall(api: NetworkApi, token: string): SlackCall {
  return (method, params, signal) =>
    api.careful(method, signal, async () => {
      // Forms are what every method reads.
      const form = new URLSearchParams();
      for (const [name, value] of Object.entries(params))
        if (value !== undefined) form.set(name, typeof value === "string" ? value : JSON.stringify(value));
      const response = await api.fetch(`${api.root}/${method}`, {
        ...{ method: "POST", body: form.toString(), signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]) },
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        },
      });
      const body = tryParseJson(await response.text());
      if (response.ok && isRecord(body) && body.ok === true) return body;
      throw refusalOf(method, response, isRecord(body) ? body.error : undefined);
    });
}

/** What Slack calls its refusals. Those that are not here are refusals. */
const KINDS: readonly (readonly [RegExp, ChannelErrorKind])[] = [
  [/^(message_not_found|cant_update_message|edit_window_closed|file_(not_found|deleted))$/, "gone"],
  [/^(invalid_blocks|invalid_blocks_format|msg_blocks_too_long)$/, "format"],
  [/^(invalid_auth|not_authed|account_inactive|token_(revoked|expired)|not_allowed_token_type)$/, "auth"],
  [/^(missing_scope|no_permission|org_login_required|team_access_not_granted|access_denied)$/, "auth"],
  // Some of it may be done, it says.
  [/^(internal_error|fatal_error|service_unavailable|team_added_to_org)$/, "unknown"],
];

function refusalOf(method: string, { status, headers }: Response, said: unknown): ChannelError {
  const error = typeof said === "string" ? said : undefined;
  const words = `Slack (${method}): ${error ?? `it answered ${status}`}`;
  const cause = { error };
  if (status === 429 || error === "ratelimited" || error === "rate_limited") {
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    return new ChannelError("rate", words, { retryAfterMs: (Number.isFinite(seconds) ? seconds : 1) * 1000, cause });
  }
  // Somewhere between us and what does it: it may be done.
  if (status >= 500 || error === undefined) return new ChannelError("unknown", words, { cause });
  const kind = KINDS.find(([pattern]) => pattern.test(error))?.[1] ?? "refused";
  return new ChannelError(kind, kind === "auth" ? `${words}. Are the token and its scopes right?` : words, { cause });
}

/** What Slack called its refusal; undefined: it was none. */
export function errorCodeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof ChannelError) || !isRecord(thrown.cause)) return undefined;
  return typeof thrown.cause.error === "string" ? thrown.cause.error : undefined;
}
