import type { LanguageModel, ModelMessage } from "ai";
import { reservedTokens } from "../../context/estimate.ts";
import type { CountText } from "../../context/text-units.ts";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { NewCall, OverBudget } from "../../ledger/ledger.ts";
import type { OverBudgetAbove, Payers, ReservedAbove } from "../../ledger/payers.ts";
import { closeSteers, takeSteers, waitingSteers } from "../intake/steer.ts";
import { named } from "./model-call.ts";
import type { StepRun } from "./step-run.ts";

/** What a model may say in one call, where nothing else bounds it. For reservations only. */
const DEFAULT_OUTPUT_TOKENS = 8_192;

/** A model call that is about to be made. */
export interface PlannedCall {
  readonly step: number;
  /** Which try of the step, from 1. */
  readonly attempt: number;
  readonly model: LanguageModel;
  readonly modelIndex: number;
  readonly messages: readonly ModelMessage[];
  /** Whether the step begins with it: then it takes up what was said meanwhile. */
  readonly begins: boolean;
}

/** What came of it; undefined when the turn was stopped meanwhile. */
export type Reservation =
  | { readonly callId: string; readonly maxOutputTokens: number | undefined }
  | { readonly over: OverBudget | OverBudgetAbove }
  | undefined;

/**
 * Reserves what a call may cost and takes up what was said meanwhile, in one commit, before anything is spent. Those who
 * asked for the turn are asked first: what is booked here is booked there.
 * @throws PerdureError `bad_config` for budgets and prices that are none, here or above.
 */
export async function reserveCall(run: StepRun, planned: PlannedCall): Promise<Reservation> {
  const { payers, plan } = run;
  if (payers === undefined) return book(run, planned, toCall(run, planned, plan.ledger.limited), plan.ledger.limited);
  for (;;) {
    const call = toCall(run, planned, true);
    const above = await askAbove(run, payers, call);
    if (above === undefined) return undefined;
    if (!above.ok) return { over: above };
    let kept = false;
    try {
      if (run.signal.aborted) return undefined;
      // What was said while they were asked is not in what they agreed to.
      if (inputOf(run, planned) > call.estimate.input) continue;
      const booked = book(run, planned, call, above.limited || plan.ledger.limited);
      kept = "callId" in booked;
      return booked;
    } finally {
      if (!kept) await payers.release(call.id);
    }
  }
}

async function askAbove(
  { plan, active, signal }: StepRun,
  payers: Payers,
  { id, step, attempt, model, modelIndex, estimate }: NewCall,
): Promise<ReservedAbove | OverBudgetAbove | undefined> {
  using _ = active.working();
  try {
    const price = plan.ledger.priceOf(model);
    return await payers.reserve({ id, step, attempt, model, modelIndex, estimate, price }, signal);
  } catch (thrown) {
    if (signal.aborted) return undefined;
    if (!PerdureError.is(thrown, "host_stopped")) throw thrown;
    // The turn goes on at the next start. It must not end before this life does.
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return undefined;
  }
}

/** @param sized whether anybody needs to know how large it may become. */
function toCall(run: StepRun, planned: PlannedCall, sized: boolean): NewCall {
  const { id, seq } = run.active.row;
  const { step, attempt, modelIndex } = planned;
  const { provider, modelId } = named(planned.model);
  return {
    ...{ id: newId("call"), turn: { id, seq }, step, attempt, purpose: "turn" },
    ...{ model: `${provider}/${modelId}`, modelIndex },
    estimate: sized ? { input: inputOf(run, planned), output: outputOf(run) } : { input: 0, output: 0 },
  };
}

/** With what was said meanwhile, if the call takes it up. */
function inputOf({ desk, turn, plan }: StepRun, { begins, messages, model }: PlannedCall): number {
  const said = (begins ? waitingSteers(desk) : []).map(({ message }): ModelMessage => ({
    role: "user",
    content: JSON.stringify(message.parts),
  }));
  const { provider, modelId } = named(model);
  const name = `${provider}/${modelId}`;
  const { counters, learned } = plan.context;
  const weigh = (count: CountText) =>
    reservedTokens([...messages, ...said], textOf(turn.instructions), turn.tools, learned.of(name), count);
  return counters.weigh(name, weigh);
}

function outputOf({ turn }: StepRun): number {
  return turn.config.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS;
}

/** @param bounded whether the answer must not be longer than what is reserved. */
function book(
  run: StepRun,
  { step, begins }: PlannedCall,
  call: NewCall,
  bounded: boolean,
): Exclude<Reservation, undefined> {
  const { plan, desk, active, turn } = run;
  const steers = begins ? waitingSteers(desk) : [];
  const verdict = desk.commit(() => {
    const found = plan.ledger.reserve(call);
    if (!found.ok) return found;
    if (begins) {
      const receipt = { turnId: active.row.id, step, callId: call.id };
      for (const chunk of steers.length === 0 ? [] : takeSteers(desk, active, receipt)) active.take({ chunk });
      active.take({ chunk: { type: "start-step" } });
    }
    // What the call builds on is stored before it is made: the end of the step before, and what was taken up.
    active.log.flush(steers.length > 0 ? "sync" : "commit");
    return found;
  }, "commit");
  if (!verdict.ok) return { over: verdict };
  if (steers.length > 0)
    closeSteers(
      desk,
      steers.map(({ turn: row }) => row),
    );
  return { callId: call.id, maxOutputTokens: bounded ? outputOf(run) : turn.config.maxOutputTokens };
}

function textOf(instructions: StepRun["turn"]["instructions"]): string {
  return typeof instructions === "string" ? instructions : JSON.stringify(instructions ?? "");
}
