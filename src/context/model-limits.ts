import { PerdureError } from "../base/error.ts";
import { fromTable, namesOf } from "../ledger/model-table.ts";

/** How much a model takes, in tokens. */
export interface ModelLimits {
  /** All that it can see at once: what is sent, and its answer. */
  readonly window: number;
  /** The most that may be sent, where the provider says so. Else it is what the answer leaves of the window. */
  readonly input?: number;
  /** The longest answer, thinking included. */
  readonly output?: number;
}

/**
 * How much models take. Either a function from `provider/modelId` to limits (called before each call; must be quick;
 * what it throws fails the call, `undefined` says "not known"), or a record of patterns, as in a `PriceTable`:
 *
 * - `"gpt-5"` is that model id at any provider, also at those that put the maker in front
 *   (`openrouter/openai/gpt-5`), and its dated or numbered versions, but not `gpt-5-mini`;
 * - `"openai/gpt-5"` is the same at one provider;
 * - `"ollama/*"` and `"llama-*"` are everything that begins so; `"*"` is every model.
 *
 * The longest pattern that fits wins.
 */
export type ModelLimitsTable = Readonly<Record<string, ModelLimits>> | ((model: string) => ModelLimits | undefined);

/** What a model is taken to have that no table knows: what nearly all that are used with tools have today. */
export const UNKNOWN_MODEL_LIMITS: ModelLimits = { window: 128_000 };

/** What tables say of the models that were looked for: each step of a turn asks several times. */
const looked = new WeakMap<object, Map<string, ModelLimits | undefined>>();

/** The limits of a model (`provider/modelId`), if the table has them. @throws PerdureError `bad_config` for wrong limits */
export function findLimits(table: ModelLimitsTable, model: string): ModelLimits | undefined {
  const limits = typeof table === "function" ? table(model) : inTable(table, model);
  if (limits !== undefined) checkLimits(limits, model);
  return limits;
}

function inTable(table: Exclude<ModelLimitsTable, (model: string) => unknown>, model: string): ModelLimits | undefined {
  let known = looked.get(table);
  if (known === undefined) looked.set(table, (known = new Map()));
  if (!known.has(model)) known.set(model, fromTable(table, allNamesOf(model)));
  return known.get(model);
}

/** {@link findLimits}, and {@link UNKNOWN_MODEL_LIMITS} for a model that the table does not have. */
export function limitsOf(table: ModelLimitsTable, model: string): ModelLimits {
  return findLimits(table, model) ?? UNKNOWN_MODEL_LIMITS;
}

/** `gateway/anthropic/claude-sonnet-4.5` and `bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0` are `claude-sonnet-4-5`. */
function allNamesOf(model: string): string[] {
  const names = namesOf(model);
  const id = model.slice(model.lastIndexOf("/") + 1);
  names.push(id);
  const claude = id.indexOf("claude-");
  if (claude !== -1) names.push(claudeId(id.slice(claude)));
  return names;
}

/** Without the region, the version of the package and what was asked of it; with `-` in its number. */
function claudeId(id: string): string {
  return id.replace(/(-v\d+)?(:[\w.]+)?$/, "").replace(/(\d)\.(\d)/, "$1-$2");
}

function checkLimits(limits: ModelLimits, model: string): void {
  const { window, input = 1, output = 1 } = limits;
  if ([window, input, output].every((one) => Number.isFinite(one) && one > 0)) return;
  throw new PerdureError(
    "bad_config",
    `The limits of ${model} must have a "window" in tokens, more than 0. "input" and "output", if set, must be more than 0 too.`,
  );
}
