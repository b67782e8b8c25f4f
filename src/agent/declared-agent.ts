import type { LanguageModel, ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import { type OptionNames, refuseUnknown } from "../base/known-options.ts";
import type { AnyAction } from "../tool/action.ts";
import type { ScheduledTasks } from "../work/task-types.ts";
import type { AgentEnv, AgentHost } from "../port.ts";
import type {
  ChunkContext,
  PrepareStepContext,
  StepConfig,
  StepContext,
  TurnConfig,
  TurnContext,
} from "../turn/step/config.ts";
import type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "../tool/call-hooks.ts";
import { classTable } from "../wire/class-table.ts";
import type { AgentOptions } from "../parts/agent-parts.ts";
import type { ChildClass } from "../parts/children.ts";
import { Think } from "./think.ts";

type Maybe<T> = T | void | Promise<T | void>;

/** A value, or a function of the agent that is asked for it each time. It may be slow; what it throws ends the turn. */
export type Declared<T, Self> = T | ((self: Self) => T | Promise<T>);

/** Settings of {@link Think} that are only values. */
const settings = [
  "sendReasoning",
  "budgets",
  "prices",
  "contextOverflow",
  "modelLimits",
  "maxPersistedMessages",
  "messageConcurrency",
  "chatRecovery",
  "chatStreamStallTimeoutMs",
  "maxToolCallsPerStep",
  "maxConcurrentTurns",
  "approvalTimeoutMs",
  "workspaceTools",
  "workspaceBash",
  "includeMcpTools",
  "waitForMcpConnections",
  "extensionLoader",
  "actionLedgerPendingRetryLeaseMs",
] as const;

/** Hooks whose types do not depend on the tools. */
const plainHooks = [
  "onStart",
  "onRequest",
  "onConnect",
  "onMessage",
  "onClose",
  "onError",
  "onBeforeSubAgent",
  "validateStateChange",
  "onStateChanged",
  "authorize",
  "mayOnlyRead",
  "shouldConnectionBeReadonly",
  "getConnectionTags",
  "getApprover",
  "authorizeApproval",
  "allowSessionOp",
  "assembleContext",
  "getDefaultTimezone",
  "onChatResponse",
  "onChatRecovery",
  "onChatError",
  "classifyChatError",
  "configureSession",
  "getCompactionModel",
  "countTokens",
  "getLiveState",
  "getWorkspace",
  "getSkills",
  "getSkillScriptRunner",
  "getExtensions",
  "authorizeTurn",
  "authorizeAction",
] as const;

const toolHooks = [
  "beforeTurn",
  "beforeStep",
  "beforeToolCall",
  "afterToolCall",
  "onStepFinish",
  "onStepEnd",
  "onChunk",
] as const;

/** What {@link AgentDeclaration} has beside settings and hooks. */
const own: OptionNames<
  Omit<AgentDeclaration, keyof Settings | keyof PlainHooks<Think> | keyof ToolHooks<Think, ToolSet>>
> = {
  ...{ name: true, model: true, instructions: true, tools: true, actions: true, maxSteps: true },
  ...{ scheduledTasks: true, initialState: true, options: true, subAgents: true },
};

type Settings = { readonly [NAME in (typeof settings)[number]]?: Think[NAME] };

/** Each is the method of {@link Think} of the same name, with the agent in front. */
type PlainHooks<Self extends Think<object>> = {
  readonly [NAME in (typeof plainHooks)[number]]?: (
    self: Self,
    ...args: Parameters<Self[NAME]>
  ) => ReturnType<Self[NAME]>;
};

interface ToolHooks<Self, TOOLS extends ToolSet> {
  readonly beforeTurn?: (self: Self, context: TurnContext<TOOLS>) => Maybe<TurnConfig<TOOLS>>;
  readonly beforeStep?: (self: Self, context: PrepareStepContext<TOOLS>) => Maybe<StepConfig<TOOLS>>;
  readonly beforeToolCall?: (self: Self, context: ToolCallContext<TOOLS>) => Maybe<ToolCallDecision>;
  readonly afterToolCall?: (self: Self, context: ToolCallResultContext<TOOLS>) => Maybe<ToolResultDecision>;
  readonly onStepFinish?: (self: Self, context: StepContext<TOOLS>) => Maybe<undefined>;
  readonly onStepEnd?: (self: Self, context: StepContext<TOOLS>) => Maybe<undefined>;
  readonly onChunk?: (self: Self, context: ChunkContext<TOOLS>) => Maybe<undefined>;
}

/** What {@link agent} takes: what a subclass of {@link Think} would override. Functions get the agent as their first argument. */
export interface AgentDeclaration<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
  TOOLS extends ToolSet = ToolSet,
>
  extends Settings, PlainHooks<Think<Env, State, Props>>, ToolHooks<Think<Env, State, Props>, TOOLS> {
  /** The name of the class. Without one it is called as it is registered: by a key of `agents`, or after its file. */
  readonly name?: string;
  /** The model, or several that are tried in order. */
  readonly model: Declared<LanguageModel | readonly LanguageModel[], Think<Env, State, Props>>;
  /** Who the agent is: its system prompt. */
  readonly instructions?: Declared<string, Think<Env, State, Props>>;
  readonly tools?: Declared<TOOLS, Think<Env, State, Props>>;
  /** Tools for work that must not happen twice. */
  readonly actions?: Declared<Record<string, AnyAction>, Think<Env, State, Props>>;
  /** The most model calls in one turn. Default 10. */
  readonly maxSteps?: number | ((self: Think<Env, State, Props>) => number);
  /** Prompts and handlers that come again and again, by their ids. */
  readonly scheduledTasks?: Declared<ScheduledTasks, Think<Env, State, Props>>;
  /** The state before any was set. As a value it is copied for each agent. */
  readonly initialState?: State | ((self: Think<Env, State, Props>) => State);
  /** Settings of the class: `static options`. */
  readonly options?: AgentOptions;
  /** Classes whose agents clients may reach as children: `static subAgents`. */
  readonly subAgents?: readonly ChildClass[];
}

const declarationNames: Readonly<Record<string, true>> = Object.fromEntries(
  [...settings, ...plainHooks, ...toolHooks, ...Object.keys(own)].map((name) => [name, true]),
);

/**
 * A chat agent without writing a class: says what a class that extends {@link Think} would override, and returns that
 * class. It can be registered, made a sub-agent, and extended like any other.
 *
 * ```ts
 * export const Support = agent({
 *   model: openai("gpt-5.4-mini"),
 *   instructions: (self) => `You help ${self.name} with orders.`,
 *   tools: { findOrder },
 * });
 * ```
 * @throws PerdureError `bad_config` when there is no model, or the name cannot stand in a URL.
 */
export function agent<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
  TOOLS extends ToolSet = ToolSet,
>(declaration: AgentDeclaration<Env, State, Props, TOOLS>): typeof Think<Env, State, Props> {
  const { name = "", model, instructions, tools, actions, maxSteps } = declaration;
  const { scheduledTasks, initialState, options, subAgents } = declaration;
  if ((model as typeof model | undefined) === undefined) {
    throw new PerdureError(
      "bad_config",
      "agent({ … }) needs `model`: a model of the AI SDK, or a function that gives one.",
    );
  }
  refuseUnknown(declaration, declarationNames, "agent({ … })");
  if (name !== "") classTable([name]);

  class DeclaredAgent extends Think<Env, State, Props> {
    static override readonly options: AgentOptions = options ?? {};
    static override readonly subAgents: readonly ChildClass[] = subAgents ?? [];

    constructor(host: AgentHost) {
      super(host);
      for (const key of settings) if (declaration[key] !== undefined) Object.assign(this, { [key]: declaration[key] });
      if (typeof maxSteps === "number") this.maxSteps = maxSteps;
      if (initialState !== undefined) {
        this.initialState = isFunction(initialState) ? initialState(this) : structuredClone(initialState);
      }
    }

    override getModel() {
      return ask(model, this);
    }

    override getSystemPrompt() {
      return instructions === undefined ? super.getSystemPrompt() : ask(instructions, this);
    }

    override getTools(): ToolSet | Promise<ToolSet> {
      return tools === undefined ? super.getTools() : ask(tools, this);
    }

    override getMaxSteps() {
      return typeof maxSteps === "function" ? maxSteps(this) : super.getMaxSteps();
    }
  }
  Object.defineProperty(DeclaredAgent, "name", { value: name, configurable: true });
  // Only those that are given: a turn does work for a hook that is there.
  const override = (key: keyof Think, method: (self: DeclaredAgent, args: readonly unknown[]) => unknown) =>
    Object.defineProperty(DeclaredAgent.prototype, key, {
      configurable: true,
      writable: true,
      value(this: DeclaredAgent, ...args: unknown[]): unknown {
        return method(this, args);
      },
    });
  for (const key of [...plainHooks, ...toolHooks]) {
    const hook: unknown = declaration[key];
    if (typeof hook === "function") override(key, (self, args) => Reflect.apply(hook, undefined, [self, ...args]));
  }
  if (scheduledTasks !== undefined) override("getScheduledTasks", (self) => ask(scheduledTasks, self));
  if (actions !== undefined) override("getActions", (self) => ask(actions, self));
  return DeclaredAgent;
}

function ask<T, Self>(declared: Declared<T, Self>, self: Self): T | Promise<T> {
  return isFunction(declared) ? declared(self) : declared;
}

/** What may be declared is never a function itself. */
function isFunction<T, Self, R>(declared: T | ((self: Self) => R)): declared is (self: Self) => R {
  return typeof declared === "function";
}
