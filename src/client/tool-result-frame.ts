import type { ClientTool, ToolResultFrame } from "../wire/frames.ts";
import type { ToolOutput } from "./tool-runner.ts";

/** The frame that gives a call its result. @param name of the tool, when `output` does not say it. */
export function toolResultFrame(
  name: string,
  output: ToolOutput,
  autoContinue: boolean,
  clientTools: readonly ClientTool[] | undefined,
): ToolResultFrame {
  const { toolCallId, toolName = name, state, errorText } = output;
  const failed = state === "output-error";
  return {
    type: "cf_agent_tool_result",
    toolCallId,
    toolName,
    autoContinue,
    ...(failed ? { state } : { output: output.output }),
    ...(failed && errorText !== undefined && { errorText }),
    ...(clientTools !== undefined && { clientTools }),
  };
}
