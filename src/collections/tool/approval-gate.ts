import { PerdureError } from "../../base/error.ts";
import type { Approvals } from "../approval/approvals.ts";

/** Lets calls pass that a person has allowed. */
export interface ApprovalGate {
  readonly ready: Promise<void>;
  /** Whether nobody has decided yet, and it is known that somebody was asked: there is nothing to do now. */
  waits(id: string): boolean;
  /** `go`, `wait`, or why it may not be executed. Asks for a decision where nobody has. */
  ask(id: string, toolName: string): Promise<"go" | "wait" | PerdureError>;
  subscribe(wake: () => void): () => void;
}

/** The gate that the option asks for. Without approvals nothing that needs one passes. */
export function approvalGate(approvals: Approvals | "query" | undefined, actorId: string): ApprovalGate {
  if (approvals === undefined || approvals === "query") {
    return {
      ready: Promise.resolve(),
      waits: () => approvals === undefined,
      ask: async () => (approvals === undefined ? "wait" : "go"),
      subscribe: () => () => {},
    };
  }
  return {
    ready: approvals.ready,
    waits: (id) => approvals.status(id) === "pending",
    async ask(id, toolName) {
      let status = approvals.status(id);
      if (status === "none") status = await approvals.request(id, { actorId });
      if (status === "approved") return "go";
      if (status === "denied" || status === "expired") return refusal(approvals, id, toolName, status);
      return "wait";
    },
    subscribe: (wake) => approvals.subscribe(wake),
  };
}

function refusal(approvals: Approvals, id: string, toolName: string, status: "denied" | "expired"): PerdureError {
  if (status === "expired") {
    return new PerdureError("not_allowed", `Nobody allowed the call of the tool "${toolName}" in time.`);
  }
  const event = approvals.decision(id);
  const why = event?.reason === undefined ? "" : `: ${event.reason}`;
  return new PerdureError("not_allowed", `${event?.actorId ?? "Somebody"} did not allow the tool "${toolName}"${why}.`);
}
