import type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "../tool/call-hooks.ts";
import type { ChunkContext, PrepareStepContext, StepConfig, StepContext } from "./step/config.ts";

type Maybe<T> = T | void | Promise<T | void>;

/**
 * What the app says about the steps of a turn: the class that it writes. Hooks may be slow; one that throws ends the turn
 * with that error, but for `beforeToolCall`, which fails the call that it is asked about, for `afterToolCall`, which
 * withholds its result, and for those that only watch. Around a crash one that watches may be called twice for the same
 * thing, or not at all.
 */
export interface StepPolicy {
  beforeStep(context: PrepareStepContext): Maybe<StepConfig>;
  beforeToolCall(context: ToolCallContext): Maybe<ToolCallDecision>;
  /** Asked before anybody is shown a result. */
  afterToolCall(context: ToolCallResultContext): Maybe<ToolResultDecision>;
  /** Only watches, and so do those below. */
  onStepFinish(context: StepContext): Maybe<undefined>;
  onStepEnd(context: StepContext): Maybe<undefined>;
  onChunk(context: ChunkContext): Maybe<undefined>;
}

/** Others who hear of a turn, after the class or beside it. They decide nothing, and report what goes wrong themselves. */
interface Watchers {
  listens(hook: "beforeToolCall" | "afterToolCall" | "onStepFinish" | "onChunk"): boolean;
  beforeToolCall(context: ToolCallContext): Promise<void>;
  afterToolCall(context: ToolCallResultContext): Promise<void>;
  onStepFinish(context: StepContext): Promise<void>;
  onChunk(context: ChunkContext): void;
}

/** A turn that the app is asked about. */
export interface AskedTurn {
  readonly policy: StepPolicy;
  /** The policy that says nothing: a class that has its hooks is not asked. */
  readonly silent: StepPolicy;
  /** Undefined where there are none. May change from turn to turn. */
  readonly watchers: Watchers | undefined;
  /** Runs a hook as the agent, in this turn. */
  as<T>(work: () => T): T;
}

/** Whether the class has something to say: where it has not, nothing need be found out for it. */
export function isAsked({ policy, silent }: AskedTurn, hook: keyof StepPolicy): boolean {
  return policy[hook] !== silent[hook];
}

/** Whether anybody listens. */
export function isHeard(turn: AskedTurn, hook: "onStepFinish" | "onChunk"): boolean {
  const isOwn = isAsked(turn, hook) || (hook === "onStepFinish" && isAsked(turn, "onStepEnd"));
  return isOwn || turn.watchers?.listens(hook) === true;
}

/** Asks the class, as the agent and in that turn; then watchers hear of it. Nothing where nobody listens. */
export async function ask<HOOK extends "beforeStep" | "beforeToolCall" | "afterToolCall">(
  turn: AskedTurn,
  hook: HOOK,
  context: Parameters<StepPolicy[HOOK]>[0],
): Promise<Awaited<ReturnType<StepPolicy[HOOK]>>> {
  const { policy } = turn;
  const asked = policy[hook] as (context: unknown) => ReturnType<StepPolicy[HOOK]>;
  const said = isAsked(turn, hook) ? await turn.as(() => Reflect.apply(asked, policy, [context])) : undefined;
  // Of a result they are told when it is shown.
  if (hook === "beforeToolCall" && turn.watchers?.listens(hook) === true)
    await turn.watchers.beforeToolCall(context as ToolCallContext);
  return said as Awaited<ReturnType<StepPolicy[HOOK]>>;
}

/** Tells those who only watch. @throws what the class throws, to be reported */
export async function tell(
  turn: AskedTurn,
  ...[hook, context]:
    | ["onStepFinish", StepContext]
    | ["onChunk", ChunkContext]
    | ["afterToolCall", ToolCallResultContext]
): Promise<void> {
  const { policy } = turn;
  const watchers = turn.watchers?.listens(hook) === true ? turn.watchers : undefined;
  if (hook === "afterToolCall") return watchers?.afterToolCall(context);
  if (hook === "onChunk") {
    watchers?.onChunk(context);
    if (isAsked(turn, hook)) await turn.as(() => policy.onChunk(context));
    return;
  }
  await watchers?.onStepFinish(context);
  for (const name of ["onStepFinish", "onStepEnd"] as const)
    if (isAsked(turn, name)) await turn.as(() => policy[name](context));
}
