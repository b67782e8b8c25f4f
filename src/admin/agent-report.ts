import { tryParseJson } from "../base/json.ts";
import { NANO_DOLLARS } from "../ledger/prices.ts";
import { isToolPart, toolName, type UIMessage } from "../message/types.ts";
import type { Sql } from "../port.ts";
import { listChildren } from "../store/child.ts";
import { messagesUp, placesUp, readMessageAt } from "../store/message.ts";
import { currentSession, listSessionLines, readOwnerLine } from "../store/session.ts";
import { openQuestions } from "../store/tool-call.ts";
import { newestTurns, openTurns } from "../store/turn.ts";
import { readUsageTotal } from "../store/usage-total.ts";
import { listTurns } from "./turn-report.ts";

/** How many sessions and turns the report of one agent shows. */
const SHOWN_SESSIONS = 20;
const SHOWN_TURNS = 20;
/** How many sessions are looked through for questions that no row is kept of. */
const ASKED_SESSIONS = 50;

/** Of what was said so much is read in one go, in characters, but at least one message: nobody else has a turn meanwhile. */
const SHOWN_CHARS = 2 * 1024 * 1024;

/** A line of the list of agents. Times are milliseconds since the epoch. */
interface AgentSummary {
  readonly id: string;
  /** In memory now. */
  readonly awake: boolean;
  readonly running: number;
  readonly waiting: number;
  readonly questions: number;
  /** How the last turn that has ended did; null: none has. */
  readonly last: string | null;
  /** When something was last said, or asked of a turn. */
  readonly usedAt: number | null;
  readonly calls: number;
  readonly tokens: number;
  readonly usd: number;
}

/** A call that waits for a person. */
interface Question {
  readonly agent: string;
  readonly call: string;
  readonly tool: string;
  readonly input: unknown;
  readonly summary: string | null;
  readonly askedAt: number | null;
  readonly expiresAt: number | null;
  readonly session: string | null;
}

/** Says how an agent is doing. */
export function summarise(rows: Sql, id: string, awake: boolean): AgentSummary {
  const open = openTurns(rows);
  const turns = newestTurns(rows, SHOWN_TURNS);
  const used = readUsageTotal(rows, "agent", "");
  const [session] = listSessionLines(rows, 1);
  const times = [session?.updatedAt, turns[0]?.settledAt ?? turns[0]?.startedAt ?? turns[0]?.createdAt];
  const known = times.filter((time) => typeof time === "number");
  return {
    ...{ id, awake },
    running: open.filter(({ status }) => status === "running").length,
    waiting: open.filter(({ status }) => status !== "running").length,
    questions: questionsIn(rows, id).length,
    last: turns.find(({ settledAt }) => settledAt !== null)?.status ?? null,
    usedAt: known.length === 0 ? null : Math.max(...known),
    ...{ calls: used.calls, tokens: used.tokens, usd: used.cost / NANO_DOLLARS },
  };
}

/** All that is told of one agent, but for what was said. */
export function describeAgent(rows: Sql, id: string, awake: boolean): object {
  const now = currentSession(rows);
  return {
    ...summarise(rows, id, awake),
    children: listChildren(rows).map(({ className, name }) => `${className}/${name}`),
    sessions: listSessionLines(rows, SHOWN_SESSIONS).map(({ id: session, name, parent, subject, updatedAt }) => ({
      ...{ id: session, name, parent, subject, current: session === now, updatedAt },
    })),
    turns: listTurns(rows, SHOWN_TURNS),
    pending: questionsIn(rows, id),
  };
}

/** The last messages of a session, oldest first, and whether those before were too large to be read with them. */
interface LastMessages {
  readonly messages: readonly unknown[];
  readonly more: boolean;
}

/** Reads the last messages of a session. Undefined: there is no such session. */
export function readMessages(rows: Sql, session: string | undefined, limit: number): LastMessages | undefined {
  const line = readOwnerLine(rows, session ?? currentSession(rows));
  if (line === undefined) return session === undefined ? { messages: [], more: false } : undefined;
  if (line.leaf === null) return { messages: [], more: false };
  const found: NonNullable<ReturnType<typeof readMessageAt>>[] = [];
  let chars = 0;
  let more = false;
  for (const { seq } of placesUp(rows, line.leaf, limit)) {
    const row = readMessageAt(rows, seq);
    if (row === undefined) continue;
    chars += row.body.length;
    more = chars > SHOWN_CHARS && found.length > 0;
    if (more) break;
    found.push(row);
  }
  const messages = found.reverse().map(({ id: message, role, createdAt, body }) => {
    const said = tryParseJson(body) as Partial<UIMessage> | undefined;
    return {
      id: message,
      role,
      createdAt,
      ...(said === undefined ? { unreadable: true } : { parts: said.parts ?? [] }),
    };
  });
  return { messages, more };
}

/** Calls of an agent that wait for a person, oldest first: those with a row, then those that only their message tells of. */
export function questionsIn(rows: Sql, agent: string): Question[] {
  const asked = openQuestions(rows).map(({ toolCallId, tool, input, summary, askedAt, expiresAt }): Question => ({
    ...{ agent, call: toolCallId, tool, summary, askedAt, expiresAt, session: null },
    input: input === null ? null : tryParseJson(input),
  }));
  const known = new Set(asked.map(({ call }) => call));
  for (const { id: session, leaf } of listSessionLines(rows, ASKED_SESSIONS)) {
    if (leaf === null) continue;
    for (const { body, createdAt } of messagesUp(rows, leaf, 1)) {
      const { parts } = (tryParseJson(body) ?? {}) as Partial<UIMessage>;
      for (const part of Array.isArray(parts) ? parts : []) {
        if (!isToolPart(part) || part.state !== "approval-requested" || known.has(part.toolCallId)) continue;
        known.add(part.toolCallId);
        const { toolCallId: call, input } = part;
        asked.push({
          agent,
          call,
          tool: toolName(part),
          input,
          summary: null,
          askedAt: createdAt,
          expiresAt: null,
          session,
        });
      }
    }
  }
  return asked;
}
