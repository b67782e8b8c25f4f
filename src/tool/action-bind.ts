import type { Tool, ToolSet } from "ai";
import { cutText } from "../message/cut-value.ts";
import { isRecord } from "../message/json.ts";
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
import { judge } from "./action-authorize.ts";
import { type ActionBinding, type BoundAction, contextOf, knownAnswer, runAction } from "./action-run.ts";
import { type DurableExecutionOptions, toolOptionsOf } from "./define.ts";

const MAX_SUMMARY_BYTES = 1_000;

/** What a tool's `needsApproval` may say besides yes and no. Both are a yes to whoever does not know them. */
export type ApprovalNeed =
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

/**
 * Gives the actions among `tools` their agent. Other tools stay what they are. Returns a new set; what was given is not
 * changed, and may be bound again for another agent.
 */
export function bindActions<TOOLS extends ToolSet>(tools: TOOLS, binding: ActionBinding): TOOLS {
  // Not by assignment: a tool called __proto__ would be what all the others inherit from.
  const bound = Object.entries(tools).map(([name, tool]) => [
    name,
    isAction(tool) ? bindAction(name, tool, binding) : tool,
  ]);
  return Object.fromEntries(bound) as TOOLS;
}

/**
 * An action on its way to another agent. It stays in the ledger of the one that hands it over, the first if there are
 * several: what has one key is done once, however many agents can do it.
 */
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
      const said = await lender.authorize?.(context);
      const isDenied = said !== undefined && !judge(context.requiredPermissions, said).allowed;
      return isDenied ? said : own.authorize?.(context);
    },
  };
}

/** Reads what `needsApproval` of any tool returned. A text is the question; else all that is not a no is a yes. */
export function readNeed(returned: unknown): ApprovalNeed {
  if (isRecord(returned) && need in returned) return returned[need] as ApprovalNeed;
  if (typeof returned === "string") {
    const summary = returned.trim() === "" ? undefined : cutText(returned, MAX_SUMMARY_BYTES);
    return { kind: "ask", summary, risk: undefined, expiresInMs: undefined };
  }
  return returned ? { kind: "ask", summary: undefined, risk: undefined, expiresInMs: undefined } : { kind: "free" };
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
  const asked = await approvalOf(bound.options, input, context);
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
  { approval = true }: ActionOptions<unknown, unknown>,
  input: unknown,
  context: ActionContext,
): Promise<ActionApproval | undefined> {
  const said = typeof approval === "function" ? await approval(input, context) : approval;
  if (said === true || said === "") return {};
  if (typeof said === "string") return { summary: said };
  return said || undefined;
}
