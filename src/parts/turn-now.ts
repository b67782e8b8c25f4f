import type { AgentHost } from "../port.ts";
import { isOpen, readTurn, type TurnRow } from "../store/turn.ts";
import { currentAgent } from "./current.ts";
import { parts } from "./part.ts";

/** The turn of the agent that the calling code runs in. Code may go on after its turn: then it runs in none. */
export function turnNow(host: AgentHost): TurnRow | undefined {
  const row = turnCarried(host);
  return row !== undefined && isOpen(row) ? row : undefined;
}

/**
 * The session of code that names none: of the turn that it runs in, or goes on after; else of the turn that runs, or of
 * all who name none.
 */
export function sessionNow(chat: { readonly host: AgentHost; readonly session: string }): string {
  return turnCarried(chat.host)?.session ?? chat.session;
}

function turnCarried(host: AgentHost): TurnRow | undefined {
  const { agent, turn } = currentAgent();
  if (turn === undefined || agent?.[parts].host !== host || host.blank) return undefined;
  return readTurn(host, turn);
}
