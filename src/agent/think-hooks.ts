import type { ExtensionHooks } from "../toolbox/extension/hooks.ts";
import type { ExtensionHook } from "../toolbox/extension/manifest.ts";
import type { ChunkContext, PrepareStepContext, StepConfig, StepContext } from "../turn/step/config.ts";
import type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "../tool/call-hooks.ts";
import type { StepPlan } from "../turn/step/plan.ts";

type Maybe<T> = T | void | Promise<T | void>;

/** The hooks of steps and calls: the part of a `Think` that users write. */
export interface StepHooks {
  beforeStep(context: PrepareStepContext): Maybe<StepConfig>;
  beforeToolCall(context: ToolCallContext): Maybe<ToolCallDecision>;
  afterToolCall(context: ToolCallResultContext): Maybe<ToolResultDecision>;
  onStepFinish(context: StepContext): Maybe<undefined>;
  onStepEnd(context: StepContext): Maybe<undefined>;
  onChunk(context: ChunkContext): Maybe<undefined>;
}

/** Who is told of what happens in a turn. */
export interface HookSides {
  readonly agent: StepHooks;
  /** The hooks that do nothing: a class that has these does not listen. */
  readonly base: StepHooks;
  /** Undefined where there are no extensions. May change from turn to turn. */
  readonly extensions: () => ExtensionHooks | undefined;
  /** Runs a hook as the agent, in the turn. */
  readonly as: <T>(work: () => T) => T;
}

type Told = Pick<
  StepPlan,
  "beforeStep" | "beforeToolCall" | "afterToolCall" | "toolCallEnded" | "stepFinished" | "chunk"
>;

/**
 * Tells the class, then its extensions. Where nobody listens there is no function, so that nothing is spent. Extensions
 * only watch: what they do wrong is reported elsewhere.
 */
export function tellHooks({ agent, base, extensions, as }: HookSides): Told {
  const steps = (["onStepFinish", "onStepEnd"] as const).filter((name) => agent[name] !== base[name]);
  const listening = (hook: ExtensionHook) => {
    const hooks = extensions();
    return hooks?.listens(hook) === true ? hooks : undefined;
  };
  return {
    beforeStep: (context) => as(() => agent.beforeStep(context)),
    async beforeToolCall(context) {
      const decision = await as(() => agent.beforeToolCall(context));
      await listening("beforeToolCall")?.beforeToolCall(context);
      return decision;
    },
    get afterToolCall() {
      if (agent.afterToolCall === base.afterToolCall) return undefined;
      return (context: ToolCallResultContext) => as(() => agent.afterToolCall(context));
    },
    get toolCallEnded() {
      const others = listening("afterToolCall");
      return others && ((context: ToolCallResultContext) => others.afterToolCall(context) as Promise<undefined>);
    },
    get stepFinished() {
      const others = listening("onStepFinish");
      if (steps.length === 0 && others === undefined) return undefined;
      return async (context: StepContext) => {
        await others?.onStepFinish(context);
        for (const name of steps) await as(() => agent[name](context));
      };
    },
    get chunk() {
      const isOwn = agent.onChunk !== base.onChunk;
      const others = listening("onChunk");
      if (!isOwn && others === undefined) return undefined;
      return (context: ChunkContext) => {
        others?.onChunk(context);
        return isOwn ? as(() => agent.onChunk(context)) : undefined;
      };
    },
  };
}
