// What is stored of an agent, read past all of its code.
import type { UIMessage } from "ai";
import type { Disk } from "./disk.ts";

export interface TurnFact {
  readonly seq: number;
  readonly id: string;
  readonly session: string;
  readonly status: string;
  readonly trigger: string;
  readonly messageIds: string;
  readonly answerId: string | null;
  readonly attempts: number;
  readonly error: string | null;
}

export interface RunFact {
  readonly id: string;
  readonly status: string;
  readonly className?: string;
  readonly output: string | null;
}

export interface UsageFact {
  readonly id: string;
  readonly turn: string | null;
  readonly purpose: string;
  readonly status: string;
  readonly tokens: number;
}

/** One agent's rows. */
export interface Facts {
  readonly agent: string;
  readonly turns: readonly TurnFact[];
  /** The conversation of each session, oldest message first. */
  readonly paths: ReadonlyMap<string, readonly UIMessage[]>;
  /** All messages of the tree. */
  readonly messages: ReadonlyMap<string, UIMessage>;
  readonly usage: readonly UsageFact[];
  readonly total: { readonly tokens: number; readonly calls: number; readonly reserved: number } | undefined;
  /** Turns whose stream is still stored. */
  readonly logged: readonly number[];
  readonly runsBelow: readonly RunFact[];
  readonly run: RunFact | undefined;
  /** What callbacks of a board have written, in order. */
  readonly done: readonly { readonly kind: string; readonly key: string }[];
  readonly rows: readonly { readonly key: string; readonly version: number }[];
  /** What code has handed in, by key. */
  readonly submissions: readonly { readonly key: string; readonly status: string; readonly messages: string }[];
  /** The state as it is stored, as JSON. */
  readonly state: string | undefined;
}

interface MessageRow {
  readonly seq: number;
  readonly parent: number | null;
  readonly id: string;
  readonly body: string;
}

export function factsOf(disk: Disk, agent: string): Facts {
  return disk.look(agent, (read) => {
    const rows = read<MessageRow>("SELECT seq, parent, id, body FROM perdure_message");
    const bySeq = new Map(rows.map((row) => [row.seq, { ...row, message: JSON.parse(row.body) as UIMessage }]));
    const pathTo = (leaf: number | null): UIMessage[] => {
      const path: UIMessage[] = [];
      for (let at = leaf; at !== null;) {
        const row = bySeq.get(at);
        if (row === undefined) throw new Error(`A message of ${agent} hangs on ${at}, which is not there.`);
        path.unshift(row.message);
        at = row.parent;
      }
      return path;
    };
    // Tables that are made by their first use.
    const made = new Set(read<{ name: string }>("SELECT name FROM sqlite_master").map(({ name }) => name));
    const sessions = read<{ id: string; leaf: number | null }>("SELECT id, leaf FROM perdure_session");
    return {
      agent,
      turns: read<TurnFact>(
        `SELECT seq, id, session, status, trigger, message_ids AS messageIds, answer_id AS answerId, attempts, error
         FROM perdure_turn ORDER BY coalesce(position, seq)`,
      ),
      paths: new Map(sessions.map(({ id, leaf }) => [id, pathTo(leaf)])),
      messages: new Map([...bySeq.values()].map(({ id, message }) => [id, message])),
      usage: read("SELECT id, turn_id AS turn, purpose, status, tokens FROM perdure_usage ORDER BY seq"),
      total: read<{ tokens: number; calls: number; reserved: number }>(
        "SELECT tokens, calls, reserved_tokens AS reserved FROM perdure_usage_total WHERE scope = 'agent'",
      )[0],
      logged: read<{ turn: number }>("SELECT DISTINCT turn FROM perdure_stream").map(({ turn }) => turn),
      runsBelow: read("SELECT run_id AS id, status, class_name AS className, output FROM perdure_agent_run"),
      run: read<RunFact>("SELECT run_id AS id, status, output FROM perdure_run")[0],
      submissions: read("SELECT idempotency_key AS key, status, messages FROM perdure_submission"),
      state: read<{ state: string }>("SELECT value AS state FROM perdure_state")[0]?.state,
      done: made.has("done") ? read("SELECT kind, key FROM done ORDER BY rowid") : [],
      rows: made.has("perdure_row") ? read("SELECT key, version FROM perdure_row WHERE collection = 'notes'") : [],
    };
  });
}

/** What is left to do, in words. */
export function openWork(disk: Disk): string[] {
  return disk.agents.flatMap((agent) =>
    disk.lookOnce(agent, (read) => {
      const open = read<{ what: string }>(
        `SELECT 'turn ' || id || ' is ' || status AS what FROM perdure_turn WHERE status IN ('held', 'accepted', 'running')
         UNION ALL SELECT 'schedule ' || callback || ' ' || payload || ' is ' || status FROM perdure_schedule
         UNION ALL SELECT 'queued ' || callback || ' ' || payload || ' is ' || status FROM perdure_queue
         UNION ALL SELECT 'fiber ' || name || ' is ' || status FROM perdure_fiber
           WHERE status NOT IN ('completed', 'error', 'aborted', 'interrupted')`,
      );
      return open.map(({ what }) => `${agent}: ${what}`);
    }),
  );
}

/** All text of a message. */
export function wordsOf(message: UIMessage | undefined): string {
  return message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}
