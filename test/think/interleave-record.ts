// What happened in a run, as the world outside of the agent saw it. Nothing here is read by the agent.

/** A request that reached the model. */
export interface ModelCall {
  readonly order: number;
  readonly life: number;
  /** The turn that it was made for. */
  readonly turn: string;
  /** The messages, each as JSON, without what asks a model to go on with a cut answer. */
  readonly prompt: readonly string[];
  /** What the provider did for it, in tokens, by its own count. */
  spent: number;
}

/** One run of a tool. */
export interface ToolRun {
  readonly order: number;
  readonly life: number;
  readonly tool: string;
  readonly toolCallId: string;
  readonly key: string;
  finished: boolean;
}

/** A message that was sent. */
export interface Sent {
  readonly id: string;
  /** What its text is recognised by, whatever version it is in. */
  readonly tag: string;
  /** The request that brought it. */
  readonly request: string;
  version: number;
  /** Since when that version is the only one; infinite when nobody knows. */
  versionSince: number;
}

/** A wish for a turn. */
export interface Request {
  readonly id: string;
  /** When it was made. */
  readonly order: number;
  readonly kind: "send" | "edit" | "regenerate" | "save" | "submission" | "continue";
  /** It was seen to be stored: from then on it may not be lost. */
  accepted: boolean;
  /** When a stop was stored; infinite when the power went off over it, and nobody knows. */
  stopped: number | undefined;
  withdrawn: boolean | "perhaps";
  /** It was sent more than once. */
  repeated: boolean;
}

export class Record {
  readonly calls: ModelCall[] = [];
  readonly runs: ToolRun[] = [];
  readonly sent = new Map<string, Sent>();
  readonly requests = new Map<string, Request>();
  /** What was said first of a call, and when. */
  readonly decisions = new Map<string, { readonly approved: boolean; readonly order: number }>();
  /** Calls that were answered while the power went off: nobody knows whether it was taken. */
  readonly unsure = new Set<string>();
  /** What the agent reported as failed. */
  readonly errors: unknown[] = [];
  /** Something that waited got another place. */
  moved = false;
  #order = 0;

  /** Numbers what happens: a larger one is later. */
  next(): number {
    return ++this.#order;
  }

  request(id: string, kind: Request["kind"]): Request {
    const order = this.next();
    const made: Request = { id, order, kind, accepted: false, stopped: undefined, withdrawn: false, repeated: false };
    this.requests.set(id, made);
    return made;
  }
}

/** The text of a message in a version; {@link tagsIn} finds it again. */
export function textOf(tag: string, version: number): string {
  return `[${tag}v${version}] please`;
}

/** The messages whose text is in here, with their versions, in order. */
export function tagsIn(text: string): { tag: string; version: number }[] {
  return [...text.matchAll(/\[(u\d+)v(\d+)\]/g)].map(([, tag = "", version]) => ({ tag, version: Number(version) }));
}
