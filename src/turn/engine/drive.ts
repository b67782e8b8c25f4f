import { PerdureError } from "../../base/error.ts";
import { isToolPart } from "../../message/types.ts";
import { type DamageTeller, readStored } from "../../store/damaged.ts";
import type { ActiveTurn } from "./active-turn.ts";
import type { ChatTurnOptions, TurnEnd } from "./chat-types.ts";
import { StreamCallIds } from "./call-ids.ts";
import { callCounter } from "./chunk-bounds.ts";
import { type ChatAnswer, ORDINARY_TURN, readAnswer } from "./chunk-source.ts";
import type { Desk } from "./desk.ts";
import { repairsOf } from "./repair-last.ts";
import type { StepPlan } from "../step/plan.ts";
import { runSteps } from "../step/run-steps.ts";
import { releaseHeld } from "../intake/tool-answers.ts";

/** Runs one attempt of a turn to its end. `again`: it stalled, and the turn is to be carried on. */
export async function drive(desk: Desk, active: ActiveTurn, continuation: boolean): Promise<TurnEnd | "again"> {
  const { signal } = active.abort;
  const stopWatching = watchForStall(desk, active);
  const options = toOptions(desk.host, active, continuation);
  let stage: "turn" | "stream" = "turn";
  try {
    // What was approved runs as soon as the model is called. That it has begun must be known after a power loss too, or it
    // would run again.
    if (runsApproved(active)) await orAborted(desk.host.durable(), signal);
    const answer = await orAborted(signal.aborted ? Promise.resolve(undefined) : desk.hooks.respond(options), signal);
    if (answer === undefined) return signal.aborted ? await cut(desk, active) : { status: "completed", silent: true };
    const plan = desk.hooks.plan?.({ turn: active.row.id, identity: active.identity });
    if (answer === ORDINARY_TURN && plan !== undefined)
      return (await orAborted(steps(desk, active, plan, options), signal)) ?? (await cut(desk, active));
    // It had run step by step, and does not any more.
    if (active.incident !== undefined && desk.hooks.ranInSteps?.(active.row) === true) active.carryOn(repairsOf(desk));
    open(desk, active);
    stage = "stream";
    const ids = new StreamCallIds(active.callIds);
    const count = callCounter(desk.hooks.settings().maxToolCalls);
    for await (const given of readAnswer(answer as ChatAnswer, active.row.id, signal)) {
      const chunk = ids.take(given.chunk);
      count(chunk);
      const source = chunk === given.chunk ? given : { chunk };
      if (source.chunk.type === "error") {
        const error = new PerdureError("model_failed", source.chunk.errorText);
        return signal.aborted ? await cut(desk, active) : await fail(desk, active, error, stage);
      }
      if (active.take(source)) await desk.host.breathe();
      if (signal.aborted) break;
      releaseHeld(desk, active);
    }
    active.endStep();
    if (!signal.aborted) releaseHeld(desk, active);
    return signal.aborted ? await cut(desk, active) : { status: "completed", silent: active.log.count === 0 };
  } catch (thrown) {
    if (signal.aborted) return cut(desk, active);
    desk.hooks.failed(thrown, { stage, requestId: active.row.id });
    return fail(desk, active, thrown, stage);
  } finally {
    stopWatching();
  }
}

/**
 * How long a turn that goes on with an answer is not offered to clients while it has brought nothing. The public hook
 * is better at going on with a stream that has begun, and the tool that was approved mostly has its result by then.
 */
const HOLD_BACK_MS = 100;

/** Clients may go on with the stream as soon as the model is asked. */
async function steps(
  desk: Desk,
  active: ActiveTurn,
  plan: StepPlan,
  options: ChatTurnOptions,
): Promise<TurnEnd | undefined> {
  const offer = () => open(desk, active);
  if (active.row.trigger !== "continuation") {
    offer();
    return runSteps(desk, active, plan, options);
  }
  active.beforeFirstChunk = offer;
  const cancel = desk.host.clock.after(HOLD_BACK_MS, offer);
  return runSteps(desk, active, plan, options).finally(cancel);
}

function runsApproved({ builder }: ActiveTurn): boolean {
  return builder.parts.some((part) => isToolPart(part) && part.state === "approval-responded");
}

async function cut(desk: Desk, active: ActiveTurn): Promise<TurnEnd | "again"> {
  if (!active.stalled || active.dropped) return { status: "aborted" };
  // Where nothing is carried on, it is the stream that has failed.
  const carriesOn = desk.hooks.settings().recovery.maxAttempts !== 0;
  return carriesOn ? "again" : fail(desk, active, active.abort.signal.reason, "stream");
}

async function fail(desk: Desk, active: ActiveTurn, error: unknown, stage: "turn" | "stream"): Promise<TurnEnd> {
  return { status: "error", error: await desk.hooks.explain(error, active.failure(stage)) };
}

/** Those who wait for the stream are told that it is here. */
function open(desk: Desk, active: ActiveTurn): void {
  if (active.streaming || active.dropped || active.halted) return;
  active.streaming = true;
  desk.output.streaming(active.row);
}

/** What the client sent along with a turn, as far as it can be read. */
export function sentAlong(
  host: DamageTeller,
  { id, body, clientTools, messageIds }: ActiveTurn["row"],
): Pick<ChatTurnOptions, "body" | "clientTools"> {
  // Read elsewhere, where nobody could be told.
  readStored(host, messageIds, `the messages of the turn ${id}`);
  return {
    body: readStored(host, body, `what came along with the turn ${id}`) as ChatTurnOptions["body"],
    clientTools: readStored(
      host,
      clientTools,
      `the tools of the client of the turn ${id}`,
    ) as ChatTurnOptions["clientTools"],
  };
}

function toOptions(host: DamageTeller, active: ActiveTurn, continuation: boolean): ChatTurnOptions {
  const { row } = active;
  return {
    requestId: row.id,
    sessionId: row.session,
    identity: active.identity,
    abortSignal: active.abort.signal,
    ...sentAlong(host, row),
    continuation,
  };
}

/** `work`, or undefined as soon as the signal aborts. What `work` does afterwards is nobody's business. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Gives an attempt up when no chunk has come for too long. */
function watchForStall(desk: Desk, active: ActiveTurn): () => void {
  const { stallTimeoutMs: usual } = desk.hooks.settings();
  let cancel = () => {};
  const look = () => {
    const stallTimeoutMs = active.stallTimeoutMs ?? usual;
    if (stallTimeoutMs <= 0) return;
    if (active.busy > 0) active.lastChunkAt = desk.host.clock.now();
    const left = active.lastChunkAt + stallTimeoutMs - desk.host.clock.now();
    if (left > 0) {
      cancel = desk.host.clock.after(left, look);
      return;
    }
    active.stalled = true;
    desk.host.emit("chat:stream:stalled", { requestId: active.row.id, timeoutMs: stallTimeoutMs });
    active.abort.abort(new PerdureError("timeout", `The model said nothing for ${stallTimeoutMs} ms.`));
  };
  active.lastChunkAt = desk.host.clock.now();
  active.watchAnew = () => {
    cancel();
    look();
  };
  look();
  return () => cancel();
}
