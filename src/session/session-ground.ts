import type { SessionStore } from "../store/session-store.ts";
import { Transcripts } from "./transcripts.ts";

/** Something happened to a session, other than that somebody spoke in it. */
export interface SessionChange {
  /** `branch`: it ends elsewhere in its tree. `switched`: it is current now. `context`: what the model reads changed. */
  readonly kind: "created" | "renamed" | "deleted" | "switched" | "branch" | "changed" | "context";
  readonly session: string;
  /** `switched`: the one that was the current one before. */
  readonly from?: string;
}

/** What sessions stand on: the conversations in memory and in rows, and those who listen. */
export interface SessionGround {
  readonly store: SessionStore;
  readonly transcripts: Transcripts;
  /** Runs `work` in a transaction. If it is undone, so is what is in memory. */
  commit<T>(work: () => T): T;
  /** Deletes what was said in a session, its turns and those of its views. `also` runs in the same transaction. */
  forget(session: string, also?: () => void): void;
  /** A message is deleted for good: what goes on for it, and what else holds its words, ends in the same transaction. */
  deleted?(messageId: string): void;
  /** Whether sessions are named after what is said in them. */
  derivesTitles(): boolean;
  /** The id of the answer that is being written in a session. */
  answering(session: string): string | undefined;
  /** Called after the commit. Must not throw. */
  told(change: SessionChange): void;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown): void;
  /** About how many tokens a text has; undefined: by its length alone. */
  readonly countTokens?: (text: string) => number;
}

/** For sessions that belong to no agent: nothing answers, and nobody listens. */
export function plainGround(store: SessionStore): SessionGround {
  const transcripts = new Transcripts(store, {});
  const commit = <T>(work: () => T): T => {
    // Others may write to the same database.
    transcripts.reload();
    try {
      return store.tx(work);
    } catch (thrown) {
      transcripts.reload();
      throw thrown;
    }
  };
  return {
    store,
    transcripts,
    commit,
    forget: (session, also) =>
      commit(() => {
        transcripts.of(session).clear();
        also?.();
      }),
    derivesTitles: () => true,
    answering: () => undefined,
    told: () => {},
    failed: () => {},
  };
}
