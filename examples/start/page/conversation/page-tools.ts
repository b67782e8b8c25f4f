import type { OnToolCall } from "perdure/react";
import type { TimeZoneTool } from "../../contract.ts";

/** Runs the tools that only a browser can: it knows where its user is in time. */
export const answerHere: OnToolCall = ({ toolCall, addToolOutput }) => {
  const { toolCallId, toolName } = toolCall;
  if (toolName !== "timeZone") return;
  const output: TimeZoneTool["output"] = {
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    localTime: new Date().toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }),
  };
  addToolOutput({ toolCallId, toolName, output });
};
