import type { InferToolInput, InferToolOutput, ModelMessage, Tool, ToolExecutionOptions, ToolSet } from "ai";
import type { OutputSubject } from "../context/superseded.ts";
import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import type { ResumedCall, ToolTurn } from "./park.ts";
import type { ToolStep } from "./step.ts";

/** What becomes of a call that was cut in the middle: `never` reports it as interrupted, `safe` runs it again. */
export type ReplayPolicy = "never" | "safe";

/** What a rule on approvals is told about the call. */
export interface ApprovalRuleOptions {
  readonly toolCallId: string;
  /** What the model had been sent when it asked for the call. */
  readonly messages: readonly ModelMessage[];
  /** For whom the turn is. */
  readonly identity?: Identity;
  /** What `beforeTurn` or `beforeStep` gave as `experimental_context`. */
  readonly context?: unknown;
}

/** What the AI SDK's tools cannot say about themselves. */
export interface DurableToolOptions<INPUT = unknown, OUTPUT = unknown> {
  /**
   * Ask a person first: yes, no, or the question. A function decides per call; a throw ends the turn. Replaces the tool's own
   * `needsApproval`. Where the AI SDK runs the tool itself, a question is a plain yes.
   */
  readonly needsApproval?:
    | boolean
    | string
    | ((input: INPUT, options: ApprovalRuleOptions) => boolean | string | PromiseLike<boolean | string>);
  /**
   * `safe`: running it twice does no harm, because it only reads or passes `idempotencyKey` on; a call that a crash cut runs
   * again. `never` (default): the model is told that it was interrupted. A call that has begun a `step` goes on either way.
   */
  readonly replay?: ReplayPolicy;
  /** The call fails, and its signal aborts, after this many milliseconds. Default: no bound. */
  readonly timeoutMs?: number;
  /** Texts of more lines are cut in the middle when they are produced; the whole is kept aside. */
  readonly maxOutputLines?: number;
  /** Outputs of more characters are cut in the middle when they are produced; the whole is kept aside. */
  readonly maxOutputChars?: number;
  /** `always`: its outputs are never cleared to make room in the model's window. */
  readonly keep?: "always";
  /**
   * What an output is about, so that the model need not read older ones: a key, several, or a piece of what has a key. An output
   * is superseded when a newer one of this tool has each of its subjects, or what they are pieces of. `undefined`: never. Without
   * it, a call with the same input supersedes. `output` is as stored, maybe cut. Must be quick and consistent; a throw counts as
   * `undefined`.
   */
  supersedes?(input: INPUT, output: OUTPUT): OutputSubject | readonly OutputSubject[] | undefined;
  /**
   * `always`: what a generator yields is shown as it comes, even if the class has an `afterToolCall`. Otherwise nothing of a
   * result is shown before that hook has seen it.
   */
  readonly preview?: "always";
  /**
   * The turn does not wait. `true`: the model gets a receipt at once; the result comes in a message of its own. With `afterMs`,
   * it is waited for that long first. Only where the engine runs the tools, as in `Think`.
   */
  readonly background?: boolean | { readonly afterMs: number };
}

const durableToolOptionsNames = namesOf<DurableToolOptions>()(
  "replay timeoutMs maxOutputLines maxOutputChars keep supersedes needsApproval preview background",
);

/** The options of a tool with the defaults filled in. */
export interface ToolOptions {
  readonly replay: ReplayPolicy;
  readonly timeoutMs: number | undefined;
  readonly maxOutputLines: number;
  readonly maxOutputChars: number;
  readonly keep: "always" | undefined;
  readonly supersedes: DurableToolOptions["supersedes"];
  readonly preview: "always" | undefined;
  /** After how many milliseconds the turn goes on without it; undefined: never. */
  readonly background: number | undefined;
}

/**
 * The AI SDK's options and a key: the same each time this call runs, also after a crash, so services with idempotency keys do the
 * work once. Absent where another engine runs the tool.
 */
export interface DurableExecutionOptions<CONTEXT = unknown> extends ToolExecutionOptions<CONTEXT> {
  readonly idempotencyKey?: string;
  /** For whom the turn is: who wrote the message that began it, where the app has said who that is. */
  readonly identity?: Identity;
  /** Who has approved the call; absent where nobody had to. */
  readonly approval?: CallApproval;
  /** Set when the call was parked and goes on now. */
  readonly resumed?: ResumedCall;
  /** Stores what is done, part by part, so that a call that a crash cut goes on behind its last step. */
  readonly step?: ToolStep;
  /** What a tool that calls other tools asks of the turn. Absent where another engine runs the tool: then none can be parked. */
  readonly turn?: ToolTurn;
}

/** A person's yes to a call. */
export interface CallApproval {
  /** Who said so, as the agent calls them (`getApprover`). */
  readonly by?: string;
  /** Who that is, as the app established it. */
  readonly identity?: Identity;
  /** When, in milliseconds since the epoch. */
  readonly at: number;
}

export const DEFAULT_OUTPUT_LINES = 2_000;
export const DEFAULT_OUTPUT_CHARS = 50_000;

const defaults: ToolOptions = {
  replay: "never",
  timeoutMs: undefined,
  maxOutputLines: DEFAULT_OUTPUT_LINES,
  maxOutputChars: DEFAULT_OUTPUT_CHARS,
  keep: undefined,
  supersedes: undefined,
  preview: undefined,
  background: undefined,
};

/** An own, enumerable property of the tool: spreading a tool copies it, and nothing that names fields sees it. */
const optionsKey = Symbol.for("perdure.tool");
/** What marks an action (`action.ts`). */
const actionKey = Symbol.for("perdure.action");

/**
 * A copy of an AI SDK tool, of the same type, with {@link DurableToolOptions}. Applied again, it adds to what was set before.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function durableTool<T extends Tool>(
  tool: T,
  options: DurableToolOptions<InferToolInput<T>, InferToolOutput<T>>,
): T {
  refuseUnknown(options, durableToolOptionsNames, "durableTool()");
  const { needsApproval, ...limits } = options;
  const given: DurableToolOptions = { ...readOptions(tool), ...withoutUndefined(limits) };
  const fault = faultOf(given);
  if (fault !== undefined) throw new PerdureError("bad_config", `durableTool: ${fault}`);
  const copy = Object.create(Object.getPrototypeOf(tool) as object | null, Object.getOwnPropertyDescriptors(tool)) as T;
  // The AI SDK's types know no words here; at run time it takes them for a yes.
  if (needsApproval !== undefined) Object.assign(copy, { needsApproval: asking(needsApproval) });
  if (given.background !== undefined && given.background !== false) {
    if (actionKey in tool)
      throw new PerdureError(
        "bad_config",
        "durableTool: an action cannot run in the background, because its permissions are those of its turn. " +
          "Make it a plain tool, or let it start the work and return.",
      );
    onlyHere(copy);
  }
  Object.defineProperty(copy, optionsKey, { value: given, enumerable: true, configurable: true, writable: true });
  return copy;
}

/** Another engine would wait for the tool, and nobody would know that it was not to. */
function onlyHere(tool: Tool): void {
  const { execute } = tool;
  if (execute === undefined) return;
  const run = function (this: unknown, input: unknown, options: DurableExecutionOptions): unknown {
    if (options.idempotencyKey !== undefined) return Reflect.apply(execute, this, [input, options]);
    throw new PerdureError(
      "bad_config",
      "This tool runs in the background, which only Think can do. Return it from getTools() of a Think agent, or leave " +
        "`background` out here and start the work with startFiber() or runAgentTool({ detached: true }).",
    );
  };
  Object.assign(tool, { execute: run });
}

/** An empty question is a question too; the AI SDK would take it for a no. */
function asking(rule: NonNullable<DurableToolOptions<never>["needsApproval"]>): unknown {
  const orYes = (said: boolean | string) => said === "" || said;
  if (typeof rule !== "function") return orYes(rule);
  return async (input: never, options: ApprovalRuleOptions) => orYes(await rule(input, options));
}

/** The options of a tool, or the defaults for what is no tool or says nothing. Never throws. */
export function toolOptionsOf(tool: unknown): ToolOptions {
  const { background, ...options } = readOptions(tool);
  const after = typeof background === "object" ? background.afterMs : background === true ? 0 : undefined;
  return { ...defaults, ...withoutUndefined(options), background: after } as ToolOptions;
}

/** A tool of a set by its name. Not what every object has: a model may call a tool `constructor`. */
export function toolNamed(tools: ToolSet, name: string): Tool | undefined {
  return Object.hasOwn(tools, name) ? tools[name] : undefined;
}

function readOptions(tool: unknown): DurableToolOptions {
  if (typeof tool !== "object" || tool === null || !(optionsKey in tool)) return {};
  return tool[optionsKey] as DurableToolOptions;
}

function withoutUndefined(options: DurableToolOptions): DurableToolOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function faultOf(options: DurableToolOptions): string | undefined {
  // Plain JavaScript and JSON can pass anything.
  const { replay }: { replay?: unknown } = options;
  if (replay !== undefined && replay !== "never" && replay !== "safe") {
    return `replay must be "never" or "safe", not ${JSON.stringify(replay)}.`;
  }
  if (!["undefined", "function"].includes(typeof options.supersedes)) return "supersedes must be a function.";
  for (const name of ["keep", "preview"] as const) {
    const value: unknown = options[name];
    if (value !== undefined && value !== "always") return `${name} must be "always", not ${JSON.stringify(value)}.`;
  }
  const { background }: { background?: unknown } = options;
  if (background !== undefined && typeof background !== "boolean") {
    const { afterMs, ...rest } = Object(background) as { afterMs?: unknown };
    if (typeof afterMs !== "number" || !(Number.isFinite(afterMs) && afterMs >= 0) || Object.keys(rest).length > 0)
      return `background must be true, false or { afterMs: a number }, not ${JSON.stringify(background)}.`;
  }
  for (const name of ["timeoutMs", "maxOutputLines", "maxOutputChars"] as const) {
    const value = options[name];
    if (value !== undefined && !(Number.isFinite(value) && value >= 1)) {
      return `${name} must be a number of at least 1, not ${String(value)}.`;
    }
  }
  return undefined;
}
