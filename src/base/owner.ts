/**
 * Whose code runs. For what is kept in the process beside the agents, such as the pages of a browser: it belongs to one of
 * these, never to a name that an app gives.
 */
export interface Owner {
  /** The agent's whole address, unique in this process. One that was deleted and made again is another one. */
  readonly agent: string;
  /** Which of its conversations, where it holds any. */
  readonly session: string | undefined;
}

let look: () => Owner | undefined = () => undefined;

/** Tells how to find out. Agents do, when the first of them is made. */
export function findOwnersBy(find: () => Owner | undefined): void {
  look = find;
}

/** Whose code calls this, across awaits. Undefined outside of agents. */
export function currentOwner(): Owner | undefined {
  return look();
}
