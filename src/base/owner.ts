/** Whose code runs. What a process keeps beside its agents, such as browser pages, belongs to one of these. */
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
