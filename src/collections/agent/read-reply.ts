import { PerdureError } from "../../base/error.ts";
import type { AgentReply } from "./config.ts";

/**
 * What a generate function returned, as an answer that may be stored, or as one that is suspended.
 * @throws PerdureError `call_failed` for everything that is no answer.
 */
export function readReply(agentName: string, result: string | AgentReply): AgentReply {
  if (typeof result === "string") {
    if (result !== "") return { content: result };
    throw new PerdureError(
      "call_failed",
      `generate of the agent "${agentName}" returned an empty string: chat() does so when it stops for an approval ` +
        `or a tool of a client. Return { content: "", outcome: "completed" } if the answer is really empty.`,
    );
  }
  const outcome = result.outcome ?? "completed";
  if (outcome === "suspended") return result;
  if (outcome === "completed" && typeof result.content === "string") return result;
  throw new PerdureError(
    "call_failed",
    `generate of the agent "${agentName}" returned no answer: its outcome is "${outcome}".`,
  );
}
