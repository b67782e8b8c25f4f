import { linkSignals } from "../base/abort.ts";
import { within } from "../base/time.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { encodeJson } from "../base/json.ts";
import { newId } from "../base/id.ts";
import { cutText } from "../message/cut-value.ts";
import { ACTION_TIMEOUT_MS, type ActionContext, type ActionOptions, isTextList } from "./action.ts";
import { checkAttachment, MAX_ATTACHMENTS, type ReplyAttachment } from "./action-attachment.ts";
import {
  type ActionAuthorization,
  type ActionAuthorizationContext,
  grantedBy,
  judge,
  readAuthorization,
} from "./action-authorize.ts";
import {
  type ActionEnd,
  type ActionEntry,
  type ActionLedger,
  type ActionStanding,
  RECLAIM_AFTER_MS,
} from "./action-ledger.ts";
import { boundOutput, type KeepText, MAX_ERROR_BYTES, type OutputLimits } from "./bound-output.ts";
import type { DurableExecutionOptions } from "./define.ts";
import { digestOf } from "./digest.ts";
import { oddAnswer } from "./odd-answer.ts";
import { toPlainJson } from "./plain-json.ts";

const MAX_KEY_CHARS = 500;
/** How long an action that was told to stop has to say so. */
const STOP_GRACE_MS = 1_000;

type Maybe<T> = T | Promise<T>;

/** What actions need of the agent that they belong to. */
export interface ActionBinding {
  readonly ledger: ActionLedger;
  /** The turn that runs. */
  turn?(): { readonly requestId: string; readonly sessionId: string } | undefined;
  /** What the turn was granted (`authorizeTurn`). Default: everything. A throw denies. */
  grants?(): Maybe<ActionAuthorization>;
  /** Decides on one call (`authorizeAction`); nothing: by the grants. A throw denies. */
  authorize?(context: ActionAuthorizationContext): Maybe<ActionAuthorization | void>;
  /** How many attachments the answer of the turn has. */
  attached?(): number;
  /** Adds attachments to the answer and does `also`, in one transaction. Without it there are none. */
  attach?(
    attachments: readonly { readonly id: string; readonly attachment: ReplyAttachment }[],
    also: () => void,
  ): void;
  /** Stores an output that is too long to go into the conversation. */
  readonly keep?: KeepText;
  /** Something failed that the model is not told about. Must not throw. */
  failed?(error: unknown): void;
  /** Default 5 minutes; false: a pending action never runs again. */
  readonly reclaimAfterMs?: number | false;
}

/** An action of a name, for one agent. */
export interface BoundAction {
  readonly name: string;
  readonly options: ActionOptions<unknown, unknown>;
  readonly limits: OutputLimits;
  readonly binding: ActionBinding;
}

/** What the model reads of an action that was not done, or failed. */
interface ActionFailure {
  readonly error: { readonly name: string; readonly message: string };
}

/** Runs one call of an action. What goes wrong is its result. */
export async function runAction(bound: BoundAction, input: unknown, handed: DurableExecutionOptions): Promise<unknown> {
  const { binding, options } = bound;
  const { ledger } = binding;
  const context = contextOf(binding, handed);
  const denied = await denial(bound, input, context);
  if (denied !== undefined) return denied;
  const entry = await entryOf(bound, input, context, handed.idempotencyKey);
  const { timeoutMs = ACTION_TIMEOUT_MS } = options;
  const other = ledger.running.get(entry.key);
  if (other !== undefined) {
    if (other.digest !== entry.digest) return told({ kind: "conflict" }, entry);
    return inTime(bound, entry, other.ended, timeoutMs, () => {});
  }
  const begun = ledger.begin(entry, binding.reclaimAfterMs);
  if (begun.kind !== "begun") return told(begun, entry);
  const stop = new AbortController();
  const unlink = linkSignals([handed.abortSignal], stop);
  const ended = perform(bound, entry, begun.startedAt, input, context, stop.signal).finally(() => {
    ledger.running.delete(entry.key);
    unlink();
  });
  ledger.running.set(entry.key, { digest: entry.digest, ended });
  // It may outlive its turn, and an agent that leaves memory before it ends would never write down that it was done. One
  // that never ends must not keep the agent for good.
  const { host } = ledger;
  host.keepAwake(within(host.clock, RECLAIM_AFTER_MS, ended)).catch(() => {});
  return inTime(bound, entry, ended, timeoutMs, () => stop.abort(new PerdureError("timeout", "The action timed out.")));
}

/** What is known before anybody is asked: denied, done before, or impossible. Undefined: it would run. */
export async function knownAnswer(bound: BoundAction, input: unknown, context: ActionContext): Promise<unknown> {
  const denied = await denial(bound, input, context);
  if (denied !== undefined) return denied;
  // A call that has not begun has no row of its own.
  if (bound.options.idempotencyKey === undefined) return undefined;
  const entry = await entryOf(bound, input, context, undefined);
  const standing = bound.binding.ledger.standing(entry, bound.binding.reclaimAfterMs);
  return standing.kind === "settled" || standing.kind === "conflict" ? told(standing, entry) : undefined;
}

/** Does the work and stores what came of it, however long it takes and whoever still waits for it. */
async function perform(
  bound: BoundAction,
  { key }: ActionEntry,
  startedAt: number,
  input: unknown,
  context: ActionContext,
  signal: AbortSignal,
): Promise<ActionEnd> {
  const { binding, options, name, limits } = bound;
  const { ledger } = binding;
  const attachments: { id: string; attachment: ReplyAttachment }[] = [];
  let open = true;
  const attachReply = (attachment: ReplyAttachment): boolean => {
    const checked = checkAttachment(attachment);
    if (!open || binding.attach === undefined) return false;
    if ((binding.attached?.() ?? 0) + attachments.length >= MAX_ATTACHMENTS) return false;
    attachments.push({ id: newId("att"), attachment: checked });
    return true;
  };
  let output: unknown;
  try {
    await ledger.host.durable();
    if (signal.aborted) throw signal.reason;
    output = await options.execute(input, { ...context, signal, idempotencyKey: key, attachReply });
  } catch (thrown) {
    ledger.drop(key, startedAt);
    return { done: false, output: failure(nameOf(thrown), errorText(thrown)) };
  } finally {
    open = false;
  }
  // From here on it is done, whatever becomes of what it returned.
  const keep: KeepText = binding.keep ?? (async () => undefined);
  const stored = storable(await boundOutput(asJson(output, name), limits, keep), name);
  const settle = () => ledger.settle(key, startedAt, stored);
  // One that took longer than its turn has no answer to go beside.
  const inTurn = (binding.turn?.()?.requestId ?? "") === context.requestId;
  if (attachments.length > 0 && inTurn && binding.attach !== undefined) binding.attach(attachments, settle);
  else ledger.host.tx(settle);
  return { done: true, output: stored };
}

/** What came of it, or that it takes too long. Then it is told to stop, and the ledger learns its end all the same. */
async function inTime(
  { name, binding }: BoundAction,
  entry: ActionEntry,
  ended: Promise<ActionEnd>,
  timeoutMs: number,
  stop: () => void,
): Promise<unknown> {
  const { clock } = binding.ledger.host;
  const first = await within(clock, timeoutMs, ended);
  if (first !== undefined) return first.output;
  stop();
  const last = await within(clock, STOP_GRACE_MS, ended);
  const took = `"${name}" did not finish within ${timeoutMs} ms`;
  if (last === undefined) {
    void ended.catch((thrown: unknown) => binding.failed?.(thrown));
    return failure("ActionTimeoutError", `${took} and goes on. Whether it is done is not known. ${advice(entry)}`);
  }
  return last.done ? last.output : failure("ActionTimeoutError", `${took} and was stopped. It may be tried again.`);
}

async function denial(
  { name, options, binding }: BoundAction,
  input: unknown,
  context: ActionContext,
): Promise<ActionFailure | undefined> {
  const { permissions = [] } = options;
  try {
    const required: unknown = typeof permissions === "function" ? await permissions(input, context) : permissions;
    if (!isTextList(required)) throw oddAnswer(`permissions of "${name}"`, required, "a list of texts");
    const grants = binding.grants === undefined ? true : readAuthorization("authorizeTurn", await binding.grants());
    const asked = { action: name, input, requiredPermissions: required, grantedPermissions: grantedBy(grants) };
    const own: unknown = await binding.authorize?.({ ...context, ...asked });
    const verdict = judge(required, own === undefined ? grants : readAuthorization("authorizeAction", own));
    return verdict.allowed
      ? undefined
      : failure("ActionAuthorizationError", `"${name}" did not run. ${verdict.reason}`);
  } catch (thrown) {
    binding.failed?.(thrown);
    return failure("ActionAuthorizationError", `"${name}" did not run: whether it may could not be found out.`);
  }
}

/** The call's place in the ledger. @throws PerdureError `bad_config` for a key that is none */
async function entryOf(
  { name, options }: BoundAction,
  input: unknown,
  context: ActionContext,
  callKey: string | undefined,
): Promise<ActionEntry> {
  const { idempotencyKey } = options;
  const key: unknown = typeof idempotencyKey === "function" ? await idempotencyKey(input, context) : idempotencyKey;
  if (idempotencyKey !== undefined && (typeof key !== "string" || key === "" || key.length > MAX_KEY_CHARS)) {
    const got = typeof key === "string" ? `${key.length} characters` : typeof key;
    throw new PerdureError(
      "bad_config",
      `The idempotencyKey of "${name}" must be a string of 1 to ${MAX_KEY_CHARS} characters, not ${got}.`,
    );
  }
  const named = idempotencyKey !== undefined;
  const place = named ? `action:${name}:${String(key)}` : `call:${name}:${callKey ?? context.toolCallId}`;
  return { key: place, named, action: name, session: context.sessionId, digest: await digestOf(name, input) };
}

/** What the callbacks of an action are told. */
export function contextOf(
  binding: ActionBinding,
  handed: Pick<DurableExecutionOptions, "toolCallId" | "messages" | "identity" | "approval">,
): ActionContext {
  const { requestId = "", sessionId = "" } = binding.turn?.() ?? {};
  const { toolCallId, messages, identity, approval } = handed;
  return {
    ...{ requestId, sessionId, toolCallId, messages },
    ...(identity !== undefined && { identity }),
    ...(approval !== undefined && { approval }),
  };
}

function told(standing: Exclude<ActionStanding, { kind: "free" }>, entry: ActionEntry): unknown {
  if (standing.kind === "settled") return standing.output;
  if (standing.kind === "conflict") {
    return failure(
      "ActionConflictError",
      `"${entry.action}" did not run: it was called before for the same thing (${entry.key}) with other input. ` +
        "If this is another thing, name it in the input. If the input has to change, tell the user that it was done already.",
    );
  }
  const at = new Date(standing.since).toISOString();
  return failure(
    "ActionPendingError",
    `"${entry.action}" was begun at ${at} and cut off. Whether it was done is not known, so it did not run again. ${advice(entry)}`,
  );
}

function advice({ action }: ActionEntry): string {
  return `Do not call "${action}" for this again. Find out whether it was done, or tell the user.`;
}

function failure(name: string, message: string): ActionFailure {
  return { error: { name, message: cutText(message, MAX_ERROR_BYTES) } };
}

/** Errors of another realm are no instances of ours, and a name can be anything. */
function nameOf(thrown: unknown): string {
  const name: unknown = typeof thrown === "object" && thrown !== null && "name" in thrown ? thrown.name : undefined;
  return typeof name === "string" && name !== "" ? name : "Error";
}

function asJson(output: unknown, name: string): unknown {
  try {
    return toPlainJson(output, `The output of "${name}"`);
  } catch (thrown) {
    return unshown(thrown);
  }
}

/** Limits of the action may let through more than a row can hold. Without a row it would be done again. */
function storable(output: unknown, name: string): unknown {
  try {
    encodeJson(output ?? null, `The output of "${name}"`);
    return output;
  } catch (thrown) {
    return unshown(thrown);
  }
}

function unshown(thrown: unknown): { readonly note: string } {
  return { note: `The action was done. What it returned cannot be shown: ${errorText(thrown)}` };
}
