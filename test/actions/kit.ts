// One action on a real database, for its tests.
import { jsonSchema, type Tool, type ToolSet } from "ai";
import { expect } from "vitest";
import { action, type ActionOptions } from "../../src/tool/action.ts";
import { bindActions } from "../../src/tool/action-bind.ts";
import { ActionLedger } from "../../src/tool/action-ledger.ts";
import type { ActionBinding } from "../../src/tool/action-run.ts";
import { runCall } from "../../src/tool/runner.ts";
import { probeHost, type ProbeHost } from "../chat/probe-host.ts";

export interface Order {
  readonly id: string;
  readonly cents?: number;
}

export const inputSchema = jsonSchema<Order>({ type: "object" });
export const byId = (input: Order): string => input.id;

export type Given = Partial<ActionOptions<Order, unknown>>;

export interface ActionKit extends ProbeHost {
  readonly ledger: ActionLedger;
  readonly runs: Order[];
  readonly failures: unknown[];
  bind(options: Given, binding?: Partial<ActionBinding>): Tool;
  call(tool: Tool, input: Order, more?: { id?: string; signal?: AbortSignal }): Promise<unknown>;
}

/** One action called `refund` on a real database. Without `execute` it notes its runs. */
export async function openAction(): Promise<ActionKit> {
  const probe = await probeHost();
  const ledger = new ActionLedger(probe.host);
  const runs: Order[] = [];
  const failures: unknown[] = [];
  let calls = 0;
  return {
    ...probe,
    ...{ ledger, runs, failures },
    bind(options, binding = {}) {
      const refund = action<Order, unknown>({
        description: "Refunds an order.",
        inputSchema,
        execute: (input) => {
          runs.push(input);
          return { refunded: input.id };
        },
        ...options,
      });
      const turn = () => ({ requestId: "r1", sessionId: "s1" });
      const set = bindActions({ refund } as ToolSet, { ledger, turn, failed: (e) => failures.push(e), ...binding });
      return set.refund as Tool;
    },
    async call(tool, input, { id = `c${++calls}`, signal = new AbortController().signal } = {}) {
      const context = { messages: [], abortSignal: signal, idempotencyKey: `m:${id}`, clock: probe.clock };
      const keep = async () => undefined;
      const outcome = await runCall(
        tool,
        { toolCallId: id, toolName: "refund", input },
        { ...context, progress: () => {}, keep },
      );
      return outcome.kind === "output" ? outcome.output : outcome;
    },
  };
}

/** What the model reads of an action that did not work. */
export const failed = (name: string, message: unknown = expect.any(String)) => ({ error: { name, message } });
