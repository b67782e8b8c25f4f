import type { UIMessage } from "../../message/types.ts";
import { nameAfter } from "../../session/name-after.ts";
import type { Desk } from "../engine/desk.ts";

/** See {@link nameAfter}; who listens is told when it is committed. */
export function nameSession({ host, hooks, output }: Desk, session: string, messages: readonly UIMessage[]): void {
  if (hooks.settings().titles === false) return;
  const named = nameAfter(host, session, messages, host.clock.now());
  if (named === undefined) return;
  host.afterTx((committed) => {
    if (!committed) return;
    host.emit("session:renamed", { ...named, by: "derived" });
    output.sessions?.({ kind: "renamed", session: named.session });
  });
}
