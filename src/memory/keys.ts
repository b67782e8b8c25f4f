/** Names of the cells of context blocks. Unique, since labels have no ":" and keys are written without one. */
export const cellOf = {
  /** The text of a block; of one that all sessions share, without a session. */
  block: (label: string, session: string | undefined) =>
    session === undefined ? `block:${label}` : `block:${session}:${label}`,
  /** The keys of a block that has some, and what they are about. */
  entries: (label: string, session: string | undefined) => `entries:${session ?? ""}:${label}`,
  /** The text behind one of them. */
  entry: (label: string, session: string | undefined, key: string) =>
    `entry:${session ?? ""}:${label}:${encodeURIComponent(key)}`,
  /** What a provider gave last. */
  source: (label: string, session: string) => `source:${session}:${label}`,
  /** The text of all blocks, as the model reads it. */
  prompt: (session: string) => `prompt:${session}`,
  /** Which blocks were added and taken away at run time. */
  changes: (session: string) => `blocks:${session}`,
  /** Which calls have loaded what. */
  loaded: (session: string) => `loaded:${session}`,
} as const;
