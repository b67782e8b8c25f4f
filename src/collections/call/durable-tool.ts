import type { ToolExecutionContext, InferToolOutput } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { ToolCallContract } from "../contract.ts";
import { keyOf, type RowCollection } from "../log/rows.ts";
import { toolRows, type ToolRows, type CallName, type ToolRowsOptions } from "./tool-rows.ts";
import { defaultCancel, defaultResult, defaultRow, isSettled, queuedTicket } from "./call-row.ts";
import { checkOnly, unchecked } from "../log/schema.ts";
import type {
  AsyncToolOptions,
  DurableTool,
  DurableToolOptions,
  DurableTools,
  OptionsArgument,
  ToolCallData,
  ToolLike,
} from "./types.ts";
import { waitAborted } from "./wait-for-result.ts";

const rowsKey = Symbol.for("perdure.call-desk");

/** What stands behind a tool that {@link makeDurableTool} made, or undefined for any other tool. */
export function toolRowsOf(tool: unknown): ToolRows | undefined {
  if (typeof tool !== "object" || tool === null) return undefined;
  return (tool as { [rowsKey]?: ToolRows })[rowsKey];
}

/** How a tool's calls wait, or undefined for a tool that is not durable. */
export function durableToolOf(tool: unknown): { readonly mode: "hold" | "suspend" | "async" } | undefined {
  const found = toolRowsOf(tool);
  return found === undefined ? undefined : { mode: found.mode };
}

/**
 * A tool for `chat()` whose calls are rows of a collection, executed by whoever watches it (`createToolExecutionEffect`). In
 * `hold` mode `execute` waits for the row's result; in `suspend` mode there is no `execute`, and the run ends with an interrupt.
 *
 * The row's id is `<generation id>:<tool call id>`, so a second run of the same answer finds the row and its result. The
 * generation id is `chat({ context: { generationId } })`, else the option; without one, no other run can find the row.
 *
 * `execute` fails with PerdureError `timeout`; `cancelled` when the run was aborted (which cancels the row too); `conflict` when
 * the id stands for other arguments; else with what `getResult` throws.
 */
export function makeDurableTool<T extends ToolLike, TRow extends ToolCallContract>(
  tool: T,
  collection: RowCollection<TRow>,
  ...[options]: OptionsArgument<DurableToolOptions<T, TRow, InferToolOutput<T>>>
): DurableTool<T> {
  return durable(tool, collection, options as LooseOptions<TRow> | undefined) as DurableTool<T>;
}

/** {@link makeDurableTool} for a list of tools that share their options. `name` tells `transform` which one it is. */
export function makeDurableTools<const TTools extends readonly ToolLike[], TRow extends ToolCallContract>(
  tools: TTools,
  collection: RowCollection<TRow>,
  ...[options]: OptionsArgument<DurableToolOptions<TTools[number], TRow, unknown>>
): DurableTools<TTools> {
  const loose = options as LooseOptions<TRow> | undefined;
  return tools.map((tool) => durable(tool, collection, loose)) as unknown as DurableTools<TTools>;
}

/**
 * A tool that starts background work: its call is a row as with {@link makeDurableTool}, but the model gets an answer at once.
 * The tool's `outputSchema` describes the final result, which the executor checks, or that answer, `{ jobId, status: "queued" }`,
 * and then the executor checks nothing; so the copy for `chat()` has none. The work outlives the run: aborting the run does not
 * cancel it.
 */
export function makeAsyncTool<T extends ToolLike, TRow extends ToolCallContract>(
  tool: T,
  collection: RowCollection<TRow>,
  ...[options]: OptionsArgument<AsyncToolOptions<T, TRow>>
): DurableTool<T, unknown> {
  return durable(tool, collection, options as LooseOptions<TRow> | undefined, "async") as DurableTool<T, unknown>;
}

/** All options, with the types that are the same for all tools. */
interface LooseOptions<TRow extends ToolCallContract> extends Partial<Omit<ToolRowsOptions<TRow>, "mode">> {
  readonly mode?: "hold" | "suspend";
  readonly generationId?: string | (() => string | undefined);
}

function durable<TRow extends ToolCallContract>(
  tool: ToolLike,
  collection: RowCollection<TRow>,
  options: LooseOptions<TRow> = {},
  kind?: "async",
): object {
  const mode = kind ?? options.mode ?? "hold";
  const made = toolRows<TRow>({
    tool,
    mode,
    collection,
    // Types let nobody leave out `transform` whose rows are other ones.
    transform: options.transform ?? ((call: ToolCallData) => defaultRow(call, mode === "async") as unknown as TRow),
    isComplete: options.isComplete ?? isSettled,
    getResult: options.getResult ?? defaultResult,
    getImmediateResult: options.getImmediateResult ?? ((row) => queuedTicket(keyOf(collection, row))),
    cancel: options.cancel ?? defaultCancel,
    timeout: options.timeout,
    cancelOnTimeout: options.cancelOnTimeout ?? false,
    write: options.write,
  });
  // What would make `chat()` ask by itself before there is a row goes; the row says it instead.
  const { execute: _execute, needsApproval: _asks, approvalSchema: _schema, ...rest } = tool as Copied;
  const copy: Copied = { ...rest, inputSchema: checkOnly(tool.inputSchema), [rowsKey]: made };
  // Who executes the call has checked its result, and let the schema change it: that is not done twice.
  if (copy.outputSchema !== undefined) copy.outputSchema = unchecked(copy.outputSchema);
  if (mode === "async") delete copy.outputSchema;
  if (mode === "suspend") return copy;
  copy.execute = (args, context) => executeCall(made, args, context, options.generationId);
  return copy;
}

interface Copied extends ToolLike {
  outputSchema?: unknown;
  inputSchema?: unknown;
  approvalSchema?: unknown;
  execute?: (args: unknown, context?: ToolExecutionContext) => Promise<unknown>;
  [rowsKey]?: ToolRows;
}

async function executeCall(
  made: ToolRows,
  args: unknown,
  context: ToolExecutionContext | undefined,
  fallback: LooseOptions<ToolCallContract>["generationId"],
): Promise<unknown> {
  const generationId = generationOf(context) ?? (typeof fallback === "function" ? fallback() : fallback);
  const call: CallName = {
    generationId: generationId ?? newId("run"),
    toolCallId: context?.toolCallId ?? newId("call"),
    args,
  };
  if (call.generationId === "")
    throw new PerdureError("bad_input", "The generation id of a tool call must not be empty.");
  const signal = context?.abortSignal;
  if (signal?.aborted === true) throw waitAborted(made.rowId(call), signal);
  await made.open([made.opening(call)]);
  return made.mode === "async" ? made.immediate(call) : made.wait(call, signal);
}

/** `generationId` of what was given to `chat()` as its context. */
function generationOf(context: ToolExecutionContext | undefined): string | undefined {
  const given = context?.context;
  if (typeof given !== "object" || given === null) return undefined;
  const { generationId } = given as { generationId?: unknown };
  return typeof generationId === "string" ? generationId : undefined;
}
