// The tools of the agent: some may run twice, some may not, some ask first, one fails.
import { jsonSchema, tool, type Tool, type ToolSet } from "ai";
import { durableTool, type DurableToolOptions } from "perdure";
import { type Clock, sleep } from "../../src/base/time.ts";
import { hashOf, random } from "./interleave-random.ts";
import type { ToolRun } from "./interleave-record.ts";
import type { Setup } from "./interleave-setup.ts";

interface Input {
  readonly n: string;
}

/** What the tools are told about the run. */
export interface ToolWorld {
  readonly seed: number;
  readonly setup: Setup;
  /** A tool was called. Throws when there is nobody who could have done it. */
  ran(tool: string, toolCallId: string, key: string): ToolRun;
}

const schema = jsonSchema<Input>({ type: "object", properties: { n: { type: "string" } }, required: ["n"] });

/** Whether a tool may run again after it was cut. */
export const SAFE: ReadonlySet<string> = new Set(["look", "check"]);
/** Whether a call of a tool has to be approved. */
export function asks(toolName: string, input: unknown): boolean {
  return toolName === "pay" || (toolName === "check" && (input as Partial<Input>).n?.endsWith("1") === true);
}

export function makeTools(world: ToolWorld, clock: Clock): ToolSet {
  const make = (name: string, options: DurableToolOptions, extra: Partial<Tool<Input, unknown>> = {}) =>
    durableTool(
      tool<Input, unknown, Record<string, unknown>>({
        description: `The tool ${name}.`,
        inputSchema: schema,
        execute: async ({ n }, { toolCallId, abortSignal, ...rest }) => {
          const { idempotencyKey } = rest as { idempotencyKey?: string };
          const run = world.ran(name, toolCallId, idempotencyKey ?? "");
          const ms = random(hashOf(`${world.seed} ${toolCallId}`)).int(world.setup.toolMs + 1);
          if (ms > 0) await sleep(clock, ms, abortSignal);
          run.finished = true;
          if (name === "fail") throw new Error(`It failed in run ${run.order}.`);
          return { run: run.order, n };
        },
        ...extra,
      } as Tool<Input, unknown>),
      options,
    );
  return {
    look: make("look", { replay: "safe" }),
    put: make("put", {}),
    fail: make("fail", {}),
    pay: make("pay", {}, { needsApproval: true }),
    check: make("check", { replay: "safe" }, { needsApproval: (input: Input) => asks("check", input) }),
  };
}
