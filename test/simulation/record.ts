// What the world outside of the hosts has seen of them. No crash takes any of it away.
import type { UIMessage } from "ai";

/** Something that a client was told to be done. */
export interface Ack {
  /** The agent's address. */
  readonly agent: string;
  readonly kind: string;
  readonly key: string;
}

/** A message that a client sent. */
export interface Sent {
  readonly tag: string;
  readonly agent: string;
  readonly session: string;
  readonly request: string;
  /** It may have been taken back: the conversation was cleared, cut or edited. */
  gone: boolean;
}

/** One run of a tool. */
export interface ToolRun {
  readonly order: number;
  readonly agent: string;
  readonly machine: number;
  readonly tool: string;
  readonly toolCallId: string;
  readonly key: string;
  readonly life: number;
  finished: boolean;
}

/** What was said to a question. */
export interface Decision {
  readonly agent: string;
  readonly toolCallId: string;
  readonly messageId: string;
  readonly approved: boolean;
  readonly order: number;
}

/** A model call that was made. */
export interface ModelCall {
  readonly order: number;
  readonly agent: string;
  readonly machine: number;
  readonly turn: string;
  readonly prompt: readonly string[];
  spent: number;
  readonly life: number;
}

/** Chunks of one turn by their numbers, as any client saw them. */
export type SeenChunks = Map<number, string>;

export class Record {
  readonly acks: Ack[] = [];
  /** How often a host was handed what carries this key: a frame may arrive twice. */
  readonly delivered = new Map<string, number>();
  readonly sent = new Map<string, Sent>();
  /** Which turns were acknowledged, by agent and request. */
  readonly accepted = new Map<string, { readonly agent: string; readonly request: string }>();
  readonly runs: ToolRun[] = [];
  readonly decisions: Decision[] = [];
  readonly calls: ModelCall[] = [];
  readonly outside: { readonly machine: number; readonly kind: string; readonly key: string }[] = [];
  /** The largest state of each board that anyone was shown. */
  readonly states = new Map<string, { readonly n: number; readonly mark: string }[]>();
  /** Answers by agent and id, in the longest form that a client was shown as stored. */
  readonly stored = new Map<string, Map<string, UIMessage>>();
  readonly chunks = new Map<string, SeenChunks>();
  /** Conversations that somebody has cleared, cut or edited. */
  readonly touched = new Set<string>();
  /** Writes that found no room: a turn that met one is carried on in the same life. */
  refused = 0;
  /** Promises that broke on the way. */
  readonly broken: string[] = [];
  #order = 0;

  next(): number {
    return ++this.#order;
  }

  /** Somebody was shown a chunk of a stream: whoever else is shown it, is shown the same. */
  saw(agent: string, request: string, epoch: number, seq: number, body: string): void {
    const place = `${agent} ${request} ${epoch}`;
    const chunks = this.chunks.get(place) ?? new Map<number, string>();
    this.chunks.set(place, chunks);
    const before = chunks.get(seq);
    if (before !== undefined && before !== body)
      this.breaks(`chunk ${seq} of ${request} in ${agent} was first ${before} and then ${body}`);
    chunks.set(seq, body);
  }

  /** Each sentence once. */
  breaks(promise: string): void {
    if (!this.broken.includes(promise)) this.broken.push(promise);
  }
}
