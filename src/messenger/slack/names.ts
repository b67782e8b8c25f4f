import { backgroundClock, within } from "../../base/time.ts";
import { isRecord } from "../../base/json.ts";
import { ChannelError } from "../channel.ts";
import { errorCodeOf, type SlackCall } from "./api.ts";

/** Says what people are called: Slack tells only their ids. Who cannot be asked about in time has none. */
type SlackNames = (ids: readonly string[], signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;

/** Slack waits three seconds for us. */
const WAIT_MS = 1_000;
const MAX_ASKED = 10;
const MAX_KNOWN = 10_000;

/** Each name is asked for once per life, and none at all where the bot has no scope for it. */
export function slackNames(call: SlackCall): SlackNames {
  const known = new Map<string, Promise<string | undefined>>();
  let may = true;
  const ask = async (id: string, signal: AbortSignal): Promise<string | undefined> => {
    try {
      const { user } = await call("users.info", { user: id }, signal);
      if (!isRecord(user)) return undefined;
      const profile = isRecord(user.profile) ? user.profile : {};
      const names = [profile.display_name, profile.real_name, user.real_name, user.name];
      return names.find((name): name is string => typeof name === "string" && name !== "");
    } catch (thrown) {
      if (errorCodeOf(thrown) === "missing_scope") may = false;
      // What Slack refuses it refuses again.
      if (!(thrown instanceof ChannelError && thrown.kind === "refused")) known.delete(id);
      return undefined;
    }
  };
  return async (ids, signal) => {
    const found = ids.slice(0, MAX_ASKED).map(async (id) => {
      if (known.size > MAX_KNOWN) known.clear();
      const name = known.get(id) ?? (may ? ask(id, signal) : Promise.resolve(undefined));
      if (may) known.set(id, name);
      return [id, await within(backgroundClock, WAIT_MS, name)] as const;
    });
    const named = (await Promise.all(found)).flatMap(([id, name]) => (name === undefined ? [] : [[id, name] as const]));
    return Object.fromEntries(named);
  };
}
