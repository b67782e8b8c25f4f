import { noSession } from "../../session/session-changes.ts";
import { MAIN_SESSION, readSessionLine } from "../../store/session.ts";
import type { Desk } from "./desk.ts";

/**
 * The session that code asks for; without one, that of the turn that runs, or of all who name none.
 * @throws PerdureError `not_found`
 */
export function sessionNamed(desk: Desk, id: string | undefined): string {
  if (id === undefined) return desk.session;
  if (id !== MAIN_SESSION && (desk.host.blank || readSessionLine(desk.host, id) === undefined)) throw noSession(id);
  return id;
}
