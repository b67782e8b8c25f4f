import type { UIMessage } from "../message/types.ts";
import { deriveTitle } from "../session/titles.ts";
import { readOwnerLine, setName } from "../store/session.ts";
import type { Desk } from "./desk.ts";

/**
 * Names a session that has no name after the first thing that a user says in it, in the transaction that stores that.
 * @param messages what was just said.
 */
export function nameSession({ host, hooks, output }: Desk, session: string, messages: readonly UIMessage[]): void {
  const first = messages.find(({ role }) => role === "user");
  if (first === undefined || hooks.settings().titles === false) return;
  const owner = readOwnerLine(host, session);
  if (owner === undefined || owner.name !== null) return;
  const name = deriveTitle(first);
  if (name === undefined) return;
  setName(host, owner.id, name, "derived", host.clock.now());
  host.afterTx((committed) => {
    if (!committed) return;
    host.emit("session:renamed", { session: owner.id, name, by: "derived" });
    output.sessions?.({ kind: "renamed", session: owner.id });
  });
}
