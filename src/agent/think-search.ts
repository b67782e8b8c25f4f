import type { ToolSet } from "ai";
import type { Sql } from "../port.ts";
import type { SessionSearch } from "../search/search.ts";
import { SESSION_SEARCH_TOOL } from "../search/search-text.ts";
import { compactedMessages } from "../store/compaction.ts";
import { isOnPath } from "../store/search.ts";
import { readSession } from "../store/session.ts";
import { sessionSearchTool, type SessionSearchToolOptions } from "../tool/session-search.ts";

/** How far back a summary is looked for. A conversation that is longer than this without one needs no tool for it. */
const MAX_STEPS = 5_000;

/**
 * The tool by which the model looks up earlier messages: when the app asked for it, with what may be searched, or when a
 * compaction leaves out some of them, or outputs of tools.
 */
export function searchTools(
  db: Sql,
  search: SessionSearch,
  session: string,
  asked: SessionSearchToolOptions["scope"],
): ToolSet {
  if (asked === undefined && !isCompacted(db, session)) return {};
  const scope = asked ?? "session";
  return { [SESSION_SEARCH_TOOL]: sessionSearchTool({ search, session: () => session, scope }) };
}

function isCompacted(db: Sql, session: string): boolean {
  const compacted = compactedMessages(db);
  if (compacted.length === 0) return false;
  const leaf = readSession(db, session)?.leaf ?? null;
  return leaf !== null && isOnPath(db, leaf, compacted, MAX_STEPS);
}
