// What a run has left in the agent's rows, read when everything is at rest.
import type { UIMessage } from "ai";
import type { ModelCall } from "./interleave-record.ts";
import type { World } from "./interleave-world.ts";

export interface TurnFact {
  readonly seq: number;
  readonly id: string;
  readonly status: string;
  readonly trigger: string;
  readonly continuation: number;
  readonly answerId: string | null;
  readonly attempts: number;
  readonly error: string | null;
  readonly receipt: string | null;
}

export interface UsageFact {
  readonly turn: string;
  readonly turnSeq: number;
  readonly session: string;
  readonly status: string;
  readonly reserved: number;
  readonly tokens: number;
}

export interface Facts {
  readonly turns: readonly TurnFact[];
  readonly turn: ReadonlyMap<string, TurnFact>;
  readonly messages: readonly UIMessage[];
  readonly usage: readonly UsageFact[];
  /** Turns whose chunks are stored. */
  readonly logged: readonly number[];
  /** What the model was asked, by turn. */
  readonly calls: ReadonlyMap<string, readonly ModelCall[]>;
}

/** The agent must be awake. */
export function factsOf(world: World): Facts {
  const turns = world.rows<TurnFact>(
    `SELECT seq, id, status, trigger, continuation, answer_id AS answerId, attempts, error, receipt
     FROM perdure_turn ORDER BY coalesce(position, seq)`,
  );
  return {
    turns,
    turn: new Map(turns.map((turn) => [turn.id, turn])),
    messages: world
      .rows<{ body: string }>(
        `WITH RECURSIVE path (at, depth) AS (
           SELECT leaf, 0 FROM perdure_session WHERE id = 'main' AND leaf IS NOT NULL
           UNION ALL
           SELECT m.parent, depth + 1 FROM path JOIN perdure_message AS m ON m.seq = at WHERE m.parent IS NOT NULL
         ) SELECT body FROM path JOIN perdure_message ON seq = at ORDER BY depth DESC`,
      )
      .map(({ body }) => JSON.parse(body) as UIMessage),
    usage: world.rows<UsageFact>(
      `SELECT turn_id AS turn, turn_seq AS turnSeq, session, status, reserved_tokens AS reserved, tokens
       FROM perdure_usage ORDER BY seq`,
    ),
    logged: world.rows<{ turn: number }>("SELECT DISTINCT turn FROM perdure_stream").map(({ turn }) => turn),
    calls: Map.groupBy(world.record.calls, ({ turn }) => turn),
  };
}

/** The role of a message of a prompt, from its JSON. */
export function roleOf(message: string): string {
  return (JSON.parse(message) as { role: string }).role;
}
