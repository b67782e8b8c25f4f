import type { SessionStore } from "../store/session-store.ts";
import { currentSession, MAIN_SESSION } from "../store/session.ts";
import { Transcript, type TranscriptOptions } from "./transcript.ts";

/** What the app may do to messages, and who hears of what becomes of them. */
interface TranscriptsOptions extends Omit<TranscriptOptions, "changed" | "renamed"> {
  /** As of a transcript; `session` is the one that shows another message under the old id now. */
  renamed?(session: string, from: string, to: string): void;
  /** Whether a turn runs in a session: it is kept in memory, and is none of those that somebody only looks at. */
  isUsed?(session: string): boolean;
}

/** How many conversations are kept in memory at once, beside those with a turn. */
const MAX_OPEN = 4;

/** The conversations of an agent that somebody looks at. They share one tree: what one changes, those that show it read anew. */
export class Transcripts {
  readonly #host: SessionStore;
  readonly #options: TranscriptsOptions;
  /** The one that was asked for last is last. */
  readonly #open = new Map<string, Transcript>();
  #current: string | undefined;

  constructor(host: SessionStore, options: TranscriptsOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** The current session: that of all who name none. */
  get current(): string {
    return (this.#current ??= this.#host.blank ? MAIN_SESSION : currentSession(this.#host));
  }

  of(session: string): Transcript {
    let transcript = this.#open.get(session);
    if (transcript !== undefined && this.#open.size === 1) return transcript;
    transcript ??= this.#make(session);
    this.#open.delete(session);
    this.#open.set(session, transcript);
    // The others stay: somebody may hold them. But they forget what they read.
    const idle = [...this.#open.values()].filter((one) => this.#options.isUsed?.(one.session) !== true);
    for (const old of idle.slice(0, -MAX_OPEN)) old.reload();
    return transcript;
  }

  /** There is no such session any more. */
  forget(session: string): void {
    this.#open.get(session)?.reload();
    this.#open.delete(session);
    this.#current = undefined;
  }

  /** What is in memory may not be what is stored. */
  reload(): void {
    this.#current = undefined;
    for (const transcript of this.#open.values()) transcript.reload();
  }

  #make(session: string): Transcript {
    const transcript: Transcript = new Transcript(this.#host, session, {
      ...this.#options,
      renamed: (from, to) => this.#options.renamed?.(session, from, to),
      changed: (ids) => {
        for (const other of this.#open.values()) if (other !== transcript) other.changedElsewhere(ids);
      },
    });
    return transcript;
  }
}
