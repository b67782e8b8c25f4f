import { PerdureError } from "../../base/error.ts";
import type { Identity } from "../../base/identity.ts";
import type { Desk } from "../engine/desk.ts";

/** The error of a request whose messages cannot be stored. */
export function notStored(cause: unknown): PerdureError {
  return new PerdureError("bad_state", "The message could not be stored. Please try again.", { cause });
}

/** Tells the app of a request that was not taken in. @returns what its sender reads. */
export function notTaken(
  { hooks }: Pick<Desk, "hooks">,
  request: { readonly id: string; readonly identity: Identity | undefined },
  error: PerdureError,
  stage: "parse" | "persist",
): Promise<string> {
  const { id: requestId, identity } = request;
  const none = { classification: undefined, partial: undefined };
  return hooks.explain(error, { stage, requestId, identity, messagesPersisted: false, ...none });
}
