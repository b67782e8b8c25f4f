import type { FlexibleSchema, ModelMessage, Tool } from "ai";
import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import type { ReplyAttachment } from "./action-attachment.ts";
import { type CallApproval, durableTool } from "./define.ts";

/** The longest that `execute` may take where the action does not say. */
export const ACTION_TIMEOUT_MS = 30_000;
/** Outputs of more characters are cut in the middle; the whole is kept aside. */
const ACTION_OUTPUT_CHARS = 20_000;
/** A durable pause that nobody has answered by then is over. */
export const PAUSE_TTL_MS = 30 * 24 * 3_600_000;

/** How much a mistake would cost, for whoever is asked. */
export type ActionRisk = "low" | "medium" | "high";

/** What a person is shown before an action runs. */
export interface ActionApproval {
  /** One sentence on what a yes does. Default: the action's description. */
  readonly summary?: string;
  readonly risk?: ActionRisk;
}

/** What an action is told about the call. */
export interface ActionContext {
  /** The turn that it is called in; empty where there is none. */
  readonly requestId: string;
  /** The session of the turn. */
  readonly sessionId: string;
  /** For whom the turn is. */
  readonly identity?: Identity;
  /** Who has approved the call; absent until somebody has, and where nobody has to. */
  readonly approval?: CallApproval;
  readonly toolCallId: string;
  /** What the model had been sent when it asked for the call. */
  readonly messages: readonly ModelMessage[];
}

/** What `execute` is told. */
export interface ActionExecuteContext extends ActionContext {
  /** Aborts when the turn is stopped, and after `timeoutMs`. */
  readonly signal: AbortSignal;
  /** The key in the ledger. The same each time the same action runs: services that know such keys do the work once. */
  readonly idempotencyKey: string;
  /**
   * Delivers something beside the answer: a draft, a card, a voice note. The model does not see it. Stored with the action's
   * result: once, or not at all if the action fails.
   * @returns false when the turn has as many as it may have
   * @throws PerdureError `bad_input` for what is no JSON object with a `type`
   */
  attachReply(attachment: ReplyAttachment): boolean;
}

type Maybe<T> = T | Promise<T>;

/** What an action is made of. The callbacks may be slow. */
export interface ActionOptions<INPUT, OUTPUT> {
  /** What the model reads. */
  readonly description: string;
  readonly inputSchema: FlexibleSchema<INPUT>;
  /** Does the work. What it throws is told to the model, and lets the action be tried again. */
  readonly execute: (input: INPUT, context: ActionExecuteContext) => Maybe<OUTPUT>;
  /**
   * Names what is done: an order, an invoice, an event; never a time or a random value. Once done, every later call of the same
   * key, from any turn and session, gets the stored result. Without it each call stands alone. A throw ends the turn.
   */
  readonly idempotencyKey?: string | ((input: INPUT, context: ActionContext) => Maybe<string>);
  /** Default {@link ACTION_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /** A person has to say yes first; a text is the question. A function decides for each call; what it throws ends the turn. */
  readonly approval?:
    | boolean
    | string
    | ActionApproval
    | ((input: INPUT, context: ActionContext) => Maybe<boolean | string | ActionApproval>);
  /** The question may wait for 30 days, whatever the agent's `approvalTimeoutMs`. Needs `approval`, which is then true. */
  readonly durablePause?: boolean;
  /** What the turn must have been granted. */
  readonly permissions?: readonly string[] | ((input: INPUT, context: ActionContext) => Maybe<readonly string[]>);
  /** More lines, or characters, are cut in the middle. */
  readonly maxOutputLines?: number;
  readonly maxOutputChars?: number;
}

const actionOptionsNames = namesOf<ActionOptions<unknown, unknown>>()(
  "description inputSchema execute idempotencyKey timeoutMs approval durablePause permissions",
  "maxOutputLines maxOutputChars",
);

/** Marks a tool as an action, and holds what it was made of. */
export const actionOptions: unique symbol = Symbol.for("perdure.action") as never;

/** Whose ledger an action is in, once it was handed from one agent to another. */
export const actionLender: unique symbol = Symbol("perdure.action-lender");

/** A tool with a ledger. What {@link action} returns. */
export type Action<INPUT = unknown, OUTPUT = unknown> = Tool<INPUT, OUTPUT> & {
  /** {@link ActionOptions}. What it takes is not said here, so that a record can hold actions of all kinds. */
  readonly [actionOptions]: unknown;
};

/** Any action, whatever it takes. */
export type AnyAction = Tool & { readonly [actionOptions]: unknown };

/**
 * A tool for work that must not happen twice. Calls are recorded before they run and settled with their result, so a crash, a
 * retry or the same wish in another conversation does not repeat them. Return it from `getActions()` or `getTools()`.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function action<INPUT, OUTPUT>(options: ActionOptions<INPUT, OUTPUT>): Action<INPUT, OUTPUT> {
  refuseUnknown(options, actionOptionsNames, "action()");
  const fault = faultOf(options);
  if (fault !== undefined) throw new PerdureError("bad_config", `action: ${fault}`);
  const { description, inputSchema, maxOutputLines, maxOutputChars = ACTION_OUTPUT_CHARS } = options;
  const unbound = {
    description,
    inputSchema,
    execute: () => {
      throw new PerdureError(
        "bad_state",
        "This action has no agent. Return it from getActions() or getTools() of a Think agent.",
      );
    },
  } as unknown as Tool<INPUT, OUTPUT>;
  const made = durableTool(unbound as Tool, {
    // The ledger says what becomes of a call that was cut: it knows more than the book of calls does.
    replay: "safe",
    maxOutputChars,
    ...(maxOutputLines !== undefined && { maxOutputLines }),
  });
  Object.defineProperty(made, actionOptions, { value: options, enumerable: true });
  return made as unknown as Action<INPUT, OUTPUT>;
}

/** Whether a tool is an action. */
export function isAction(value: unknown): value is AnyAction {
  return typeof value === "object" && value !== null && actionOptions in value;
}

function faultOf(options: object): string | undefined {
  // Plain JavaScript can pass anything.
  const given: Record<string, unknown> = { ...options };
  if (typeof given.description !== "string" || given.description.trim() === "") {
    return "description must say what the action does.";
  }
  if (given.inputSchema === undefined) return "inputSchema is missing. Use zod, or jsonSchema() of the AI SDK.";
  if (typeof given.execute !== "function") return "execute must be a function.";
  const { timeoutMs, idempotencyKey, permissions, approval, durablePause } = given;
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && Number.isFinite(timeoutMs) && timeoutMs >= 1)) {
    return "timeoutMs must be a number of at least 1.";
  }
  if (idempotencyKey !== undefined && !["string", "function"].includes(typeof idempotencyKey)) {
    return "idempotencyKey must be a string or a function that returns one.";
  }
  if (permissions !== undefined && typeof permissions !== "function" && !isTextList(permissions)) {
    return "permissions must be a list of texts or a function that returns one.";
  }
  if (durablePause === true && approval === false) {
    return "durablePause waits for a person, and approval: false asks nobody. Leave one of them out.";
  }
  return undefined;
}

/** Whether a value is a list of texts. */
export function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
