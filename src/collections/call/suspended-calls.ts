import { PerdureError, errorText } from "../../base/error.ts";
import type { AgentToolCall } from "../contract.ts";
import type { RowOptions } from "../log/rows.ts";
import { startTimer } from "../../base/time.ts";
import type { ToolRows, CallName, Opening } from "./tool-rows.ts";
import { toolRowsOf } from "./durable-tool.ts";
import type { ToolResultMessage } from "./types.ts";
import { waitAborted } from "./wait-for-result.ts";

/** The answer whose calls are meant. */
interface CallsOf {
  readonly generationId: string;
}

interface Known {
  readonly call: AgentToolCall;
  readonly rows: ToolRows;
  readonly name: CallName;
}

/**
 * Writes the calls of a turn that ended for them as pending rows, one write per collection, so that all can execute at once.
 * Skips tools that are not durable; keeps rows that exist.
 * @returns the ids of the rows, in the order of the calls.
 * @throws PerdureError `conflict` when a row of the same id is another call; `fenced` when a condition of `write` did not hold;
 *   `bad_input` when a call's arguments are not JSON.
 */
export async function openToolCalls(
  tools: readonly unknown[],
  calls: readonly AgentToolCall[],
  options: CallsOf & { readonly write?: RowOptions },
): Promise<string[]> {
  const known = knownCalls(tools, calls, options);
  const groups = new Map<object, { rows: ToolRows; openings: Opening[] }>();
  const openings = known.map(({ rows, name }) => ({ rows, opening: rows.opening(name) }));
  for (const { rows, opening } of openings) {
    const group = groups.get(rows.collection);
    if (group === undefined) groups.set(rows.collection, { rows, openings: [opening] });
    else group.openings.push(opening);
  }
  for (const group of groups.values()) await group.rows.open(group.openings, options.write);
  return openings.map(({ opening }) => opening.id);
}

/**
 * The results of a turn's calls so far: messages to append after the message that made the calls, and the calls that still wait.
 * A failed or cancelled call is over too; its message says so.
 */
export async function toolCallResults(
  tools: readonly unknown[],
  calls: readonly AgentToolCall[],
  options: CallsOf,
): Promise<{ messages: ToolResultMessage[]; open: AgentToolCall[] }> {
  const messages: ToolResultMessage[] = [];
  const open: AgentToolCall[] = [];
  for (const { call, rows, name } of knownCalls(tools, calls, options)) {
    const settled = await rows.settled(name);
    if (settled === undefined) open.push(call);
    else messages.push({ role: "tool", toolCallId: call.id, content: resultText(settled) });
  }
  return { messages, open };
}

/** Calls `wake` whenever the rows of a turn's calls may have changed. Returns its end. `wake` must not throw. */
export function watchToolCalls(
  tools: readonly unknown[],
  calls: readonly AgentToolCall[],
  options: CallsOf,
  wake: () => void,
): () => void {
  const all = new Map(knownCalls(tools, calls, options).map(({ rows }) => [rows.collection, rows]));
  const ends = [...all.values()].map((rows) => rows.subscribe(wake));
  return () => ends.forEach((end) => end());
}

/**
 * Waits until all calls of a turn are over, and gives their messages.
 * @throws PerdureError `timeout`, `cancelled` when `signal` aborted. The calls go on: see {@link cancelToolCalls}.
 */
export async function waitForToolCalls(
  tools: readonly unknown[],
  calls: readonly AgentToolCall[],
  options: CallsOf & { readonly signal?: AbortSignal; readonly timeout?: number },
): Promise<ToolResultMessage[]> {
  const { signal, timeout } = options;
  let changed: () => void = () => {};
  const aborted = () => changed();
  const unwatch = watchToolCalls(tools, calls, options, () => changed());
  signal?.addEventListener("abort", aborted);
  let late = false;
  const timeIsUp = () => {
    late = true;
    changed();
  };
  const stopTimer = timeout === undefined ? () => {} : startTimer(timeout, timeIsUp);
  try {
    for (;;) {
      const next = new Promise<void>((resolve) => (changed = resolve));
      const { messages, open } = await toolCallResults(tools, calls, options);
      if (open.length === 0) return messages;
      const ids = open.map(({ id }) => id).join(", ");
      if (signal?.aborted === true) throw waitAborted(ids, signal);
      if (late) throw new PerdureError("timeout", `The tool calls ${ids} had no result after ${timeout} ms.`);
      await next;
    }
  } finally {
    unwatch();
    stopTimer();
    signal?.removeEventListener("abort", aborted);
  }
}

/** Cancels those calls of a turn that are not over: who executes one is told to stop. */
export async function cancelToolCalls(
  tools: readonly unknown[],
  calls: readonly AgentToolCall[],
  options: CallsOf & { readonly write?: RowOptions },
): Promise<void> {
  for (const { rows, name } of knownCalls(tools, calls, options)) await rows.cancel(name, options.write);
}

function knownCalls(tools: readonly unknown[], calls: readonly AgentToolCall[], { generationId }: CallsOf): Known[] {
  const all = new Map<string, ToolRows>();
  for (const tool of tools) {
    const rows = toolRowsOf(tool);
    if (rows?.mode === "suspend") all.set(rows.tool.name, rows);
  }
  return calls.flatMap((call) => {
    const rows = all.get(call.name);
    if (rows === undefined) return [];
    return [{ call, rows, name: { generationId, toolCallId: call.id, args: argumentsOf(call) } }];
  });
}

/** As `chat()` reads them: no text is no argument, and what is no object is an empty one. */
function argumentsOf({ id, name, arguments: text }: AgentToolCall): unknown {
  if (text.trim() === "") return {};
  try {
    const args: unknown = JSON.parse(text);
    return typeof args === "object" && args !== null ? args : {};
  } catch {
    throw new PerdureError("bad_input", `The arguments of the call "${id}" of "${name}" are not JSON: ${text}`);
  }
}

function resultText(settled: { readonly result: unknown } | { readonly error: unknown }): string {
  if ("error" in settled) return JSON.stringify({ error: errorText(settled.error) });
  const { result } = settled;
  return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
}
