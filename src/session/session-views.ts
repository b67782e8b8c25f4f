import { newId } from "../base/id.ts";
import { insertSession, MAIN_SESSION, viewsOf } from "../store/session.ts";
import { openTurns } from "../store/turn.ts";
import { deleteView, findMessage, findSession } from "./session-changes.ts";
import type { SessionDesk } from "./session-desk.ts";
import { settledEnd } from "./session-turns.ts";
import { newestLeafIn } from "./siblings.ts";

/** How many views a session may have. Beyond that the one goes that was not used for the longest time. */
export const MAX_VIEWS = 100;

/**
 * Makes a view of a session: a place of its own in the same tree, for one client that looks at another branch than the
 * rest. What is said there is said in the session. It is not listed, and ends with {@link closeView}, with its session,
 * or when there are too many; one with a turn under way stays.
 * @param at it ends with the newest message under this one. Default: where the session ends.
 * @returns its id. @throws PerdureError `not_found`
 */
export function openView(desk: SessionDesk, session: string, at?: string): string {
  const { store } = desk;
  const source = findSession(desk, session);
  const owner = source.viewOf ?? source.id;
  const top = at === undefined ? undefined : findMessage(desk, source, at).seq;
  const leaf = settledEnd(desk, top === undefined ? source.leaf : newestLeafIn(store, source, top), top);
  const id = newId("view");
  const gone: string[] = [];
  desk.commit(() => {
    // For the first session: its row may not be there yet.
    if (owner === MAIN_SESSION) insertSession(store, { id: owner }, store.clock.now());
    insertSession(store, { id, leaf, viewOf: owner }, store.clock.now());
    const views = viewsOf(store, owner).filter((view) => view.id !== id);
    if (views.length < MAX_VIEWS) return;
    const busy = new Set(openTurns(store).map((turn) => turn.session));
    for (const view of views.slice(MAX_VIEWS - 1)) {
      if (busy.has(view.id)) continue;
      deleteView(desk, view.id);
      gone.push(view.id);
    }
  });
  // What a limit may delete has changed: this one shows it too.
  desk.transcripts.reload();
  for (const view of gone) {
    desk.transcripts.forget(view);
    desk.told({ kind: "deleted", session: view });
  }
  return id;
}
