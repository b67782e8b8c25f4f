import type { Tool } from "ai";
import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import type { MessageText, SessionSearch } from "../search/search.ts";
import type { SearchHit } from "../wire/session-types.ts";
import { durableTool } from "./define.ts";
import { objectInput } from "../base/json-schema.ts";

const DEFAULT_HITS = 8;

/** What the model says: words to look for, or a message to read. */
export interface SessionSearchInput {
  readonly query?: string;
  readonly read?: string;
  readonly page?: number;
}

/** What the model reads. */
export type SessionSearchOutput =
  | { readonly hits: readonly SessionSearchHit[]; readonly note?: string }
  | ({ readonly note?: string } & Omit<MessageText, "createdAt"> & { readonly at: string })
  | { readonly error: string };

/** One hit, as the model reads it. */
export interface SessionSearchHit {
  readonly messageId: string;
  readonly role: string;
  readonly at: string;
  readonly excerpt: string;
  /** Where it was said, when the search goes through all sessions. */
  readonly session?: string;
}

/** How {@link sessionSearchTool} looks things up. */
export interface SessionSearchToolOptions {
  readonly search: Pick<SessionSearch, "searchLoosely" | "read">;
  /** The session of the turn that runs. */
  session(): string;
  /** `session` (default): what the turn's session shows. `agent`: all sessions; only if all belong to the same person. */
  readonly scope?: "session" | "agent";
}

const sessionSearchToolOptionsNames = namesOf<SessionSearchToolOptions>()("search session scope");

const inputSchema = objectInput<SessionSearchInput>([], {
  query: { type: "string", description: "Words to look for, such as names, numbers or file names." },
  read: { type: "string", description: "The id of a message, to read all of it." },
  page: { type: "integer", minimum: 1, description: "Which page of a long message. Default: 1." },
});

/**
 * A tool to find earlier messages and read them whole, summarised ones too. It only reads, so a call that a crash cut runs again.
 * Wrong input is answered with a text that says what to do.
 */
export function sessionSearchTool(options: SessionSearchToolOptions): Tool<SessionSearchInput, SessionSearchOutput> {
  refuseUnknown(options, sessionSearchToolOptionsNames, "sessionSearchTool()");
  const { search, scope = "session" } = options;
  const where = scope === "agent" ? "all conversations" : "this conversation";
  const made: Tool<SessionSearchInput, SessionSearchOutput> = {
    description:
      `Looks through the earlier messages of ${where}, those that were summarised included. ` +
      "Give `query` to find messages by their words, or `read` with a message id to read one whole. " +
      "Use it when a detail is missing from what you can see, instead of guessing.",
    inputSchema,
    async execute({ query, read, page }, { abortSignal }) {
      const within = scope === "agent" ? {} : { session: options.session() };
      try {
        if (read !== undefined) return await readMessage(search, read, page, within);
        if (query === undefined) return { error: "Give `query`, or `read` with the id of a message." };
        const hits = await search.searchLoosely(query, { ...within, limit: DEFAULT_HITS, signal: abortSignal });
        return describe(hits, scope);
      } catch (thrown) {
        // What the model got wrong it can mend itself.
        if (PerdureError.is(thrown, "bad_input")) return { error: thrown.message };
        throw thrown;
      }
    },
  };
  return durableTool(made, { replay: "safe" });
}

async function readMessage(
  search: Pick<SessionSearch, "read">,
  id: string,
  page: number | undefined,
  within: { readonly session?: string },
): Promise<SessionSearchOutput> {
  const found = await search.read(id, { ...within, page });
  if (found === undefined) return { error: `There is no message "${id}" here. Find ids with \`query\`.` };
  const { createdAt, ...rest } = found;
  const more = rest.page < rest.pages ? { note: `Read on with page ${rest.page + 1}.` } : {};
  return { ...rest, at: timeOf(createdAt), ...more };
}

function describe(hits: readonly SearchHit[], scope: "session" | "agent"): SessionSearchOutput {
  const found = hits.map(({ messageId, role, createdAt, excerpt, sessionId, sessionName }) => ({
    ...{ messageId, role, at: timeOf(createdAt), excerpt },
    ...(scope === "agent" && { session: sessionName ?? sessionId }),
  }));
  return found.length === 0 ? { hits: found, note: "Nothing was found. Try fewer or other words." } : { hits: found };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
