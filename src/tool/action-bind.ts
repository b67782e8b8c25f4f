import type { Tool, ToolSet } from "ai";
import type { PerdureError } from "../base/error.ts";
import { cutText } from "../message/cut-value.ts";
import { isRecord } from "../base/json.ts";
import {
  type ActionApproval,
  type ActionContext,
  actionLender,
  actionOptions,
  type ActionOptions,
  type ActionRisk,
  type AnyAction,
  isAction,
  PAUSE_TTL_MS,
} from "./action.ts";
import { judge, readAuthorization } from "./action-authorize.ts";
import { oddAnswer } from "./odd-answer.ts";
import { type ActionBinding, type BoundAction, contextOf, knownAnswer, runAction } from "./action-run.ts";
import { type DurableExecutionOptions, toolOptionsOf } from "./define.ts";

const MAX_SUMMARY_BYTES = 4_000;

/** What a tool's `needsApproval` may say besides yes and no. Both are a yes to whoever does not know them. */
type ApprovalNeed =
  | { readonly kind: "free" }
  | {
      readonly kind: "ask";
      readonly summary: string | undefined;
      readonly risk: ActionRisk | undefined;
      /** How long the question may wait; undefined: as the agent's settings say. */
      readonly expiresInMs: number | undefined;
    }
  /** Nobody has to be asked, and the tool need not run: this is its output. */
  | { readonly kind: "answer"; readonly output: unknown };

const need: unique symbol = Symbol.for("perdure.approval-need") as never;

/** A new set in which the actions among `tools` have their agent. `tools` is unchanged, and can be bound to other agents. */
export function bindActions<TOOLS extends ToolSet>(tools: TOOLS, binding: ActionBinding): TOOLS {
  // Not by assignment: a tool called __proto__ would be what all the others inherit from.
  const bound = Object.entries(tools).map(([name, tool]) => [
    name,
    isAction(tool) ? bindAction(name, tool, binding) : tool,
  ]);
  return Object.fromEntries(bound) as TOOLS;
}

/** An action on its way to another agent. It stays in the ledger of the first agent to hand it over, so one key is done once. */
export function lendAction(action: AnyAction, binding: ActionBinding): AnyAction {
  if (actionLender in action) return action;
  const lent: AnyAction = { ...action };
  return Object.assign(lent, { [actionLender]: () => binding });
}

/** The same for one. */
export function bindAction(name: string, action: AnyAction, own: ActionBinding): Tool {
  // What the action takes is checked against its schema before it gets here.
  const options = action[actionOptions] as ActionOptions<unknown, unknown>;
  // Only `lendAction` has the symbol.
  const lender = (action as { readonly [actionLender]?: () => ActionBinding })[actionLender]?.();
  const binding = lender === undefined ? own : lentBinding(lender, own);
  const bound: BoundAction = { name, options, binding, limits: toolOptionsOf(action) };
  const asks = options.durablePause === true || (options.approval !== undefined && options.approval !== false);
  return {
    ...action,
    execute: (input: unknown, handed: DurableExecutionOptions) => runAction(bound, input, handed),
    ...(asks && { needsApproval: (input: unknown, handed: DurableExecutionOptions) => ask(bound, input, handed) }),
  } as Tool;
}

/** The turn, its grants and its answer are those of the agent that runs it; the ledger is the lender's, who may say no too. */
function lentBinding(lender: ActionBinding, own: ActionBinding): ActionBinding {
  return {
    ...own,
    ledger: lender.ledger,
    get reclaimAfterMs() {
      return lender.reclaimAfterMs;
    },
    authorize: async (context) => {
      const said: unknown = await lender.authorize?.(context);
      const rule = said === undefined ? undefined : readAuthorization("authorizeAction", said);
      const isDenied = rule !== undefined && !judge(context.requiredPermissions, rule).allowed;
      return isDenied ? rule : own.authorize?.(context);
    },
  };
}

/** Reads what a tool's `needsApproval` says: yes, no, or the question. Anything else asks a person, and `odd` gets the error. */
export function readNeed(said: unknown, odd: (error: PerdureError) => void = () => {}): ApprovalNeed {
  if (isRecord(said) && need in said) return said[need] as ApprovalNeed;
  if (said === false) return { kind: "free" };
  if (said !== true && typeof said !== "string") odd(oddAnswer("needsApproval", said, "true, false or a text"));
  const summary = typeof said !== "string" || said.trim() === "" ? undefined : cutText(said, MAX_SUMMARY_BYTES);
  return { kind: "ask", summary, risk: undefined, expiresInMs: undefined };
}

/** One sentence for whoever is asked. */
export function approvalText(
  asked: Pick<Extract<ApprovalNeed, { kind: "ask" }>, "summary" | "risk">,
): string | undefined {
  const { summary, risk } = asked;
  if (risk === undefined) return summary;
  return summary === undefined ? `Risk: ${risk}.` : `${summary} (risk: ${risk})`;
}

async function ask(bound: BoundAction, input: unknown, handed: DurableExecutionOptions): Promise<unknown> {
  const context = contextOf(bound.binding, handed);
  const asked = await approvalOf(bound, input, context);
  if (asked === undefined) return false;
  const output = await knownAnswer(bound, input, context);
  if (output !== undefined) return { [need]: { kind: "answer", output } satisfies ApprovalNeed };
  const { summary = bound.options.description, risk } = asked;
  const expiresInMs = bound.options.durablePause === true ? PAUSE_TTL_MS : undefined;
  return {
    [need]: { kind: "ask", summary: cutText(summary, MAX_SUMMARY_BYTES), risk, expiresInMs } satisfies ApprovalNeed,
  };
}

async function approvalOf(
  { name, options: { approval = true }, binding }: BoundAction,
  input: unknown,
  context: ActionContext,
): Promise<ActionApproval | undefined> {
  const said: unknown = typeof approval === "function" ? await approval(input, context) : approval;
  if (said === false) return undefined;
  if (typeof said === "string" && said !== "") return { summary: said };
  if (isRecord(said)) return said;
  if (said !== true && said !== "")
    binding.failed?.(oddAnswer(`The approval of "${name}"`, said, "true, false, a text or { summary, risk }"));
  return {};
}
