// Builds long conversations, the same ones in every run.
import type { UIMessage } from "ai";
import type { Part } from "../../src/message/types.ts";
import { type Random, seeded } from "../support/seeded.ts";
import type { Fact } from "./facts.ts";

/** A tool call that a live turn makes. */
export interface LiveCall {
  readonly toolName: string;
  readonly input: Record<string, unknown>;
}

/** A stretch of a conversation, and the question that a turn then answers. */
export interface Round {
  /** What was said before: it is stored without a turn. */
  readonly messages: readonly UIMessage[];
  readonly ask: string;
  /** What the model calls before it answers. */
  readonly calls: readonly LiveCall[];
}

/** A long conversation, and what must survive of it. */
export interface Conversation {
  readonly name: string;
  /** The script, or scripts, that most of it is written in. */
  readonly script: string;
  readonly system: string;
  readonly rounds: readonly Round[];
  readonly facts: readonly Fact[];
  /** Ids of messages that stay word for word. */
  readonly pins: readonly string[];
  /** Outputs of tools that live turns call. */
  readonly tools: Readonly<Record<string, (input: Record<string, unknown>) => unknown>>;
  /** Orders that stand in the text and are not for whoever summarises it. */
  readonly orders: readonly string[];
}

/** What a conversation is begun with. */
export interface TalkStart {
  readonly name: string;
  readonly script: string;
  readonly system: string;
  readonly facts: readonly Fact[];
  readonly tools?: Conversation["tools"];
}

/** Sentences to make small talk of; `{n}` becomes a number. */
export interface Bank {
  readonly asks: readonly string[];
  readonly answers: readonly string[];
}

export class Talk {
  readonly random: Random;
  readonly #start: TalkStart;
  readonly #pins: string[] = [];
  readonly #orders: string[] = [];
  readonly #rounds: Round[] = [];
  #messages: UIMessage[] = [];
  #count = 0;
  #calls = 0;

  constructor(start: TalkStart, seed: number) {
    this.#start = start;
    this.random = seeded(seed);
  }

  /** Every message has a mark of its own, by which it is found again in what a model is sent. */
  get mark(): string {
    return markOf(this.#start.name, this.#count);
  }

  user(text: string, ...more: Part[]): string {
    return this.#add("user", [{ type: "text", text: `${text} ${this.mark}` }, ...more]);
  }

  /** The last text of an answer has the mark. */
  answer(text: string, ...before: Part[]): string {
    const steps: Part[] = before.length === 0 || before[0]?.type === "step-start" ? before : [step, ...before];
    return this.#add("assistant", [...steps, step, { type: "text", text: `${text} ${this.mark}`, state: "done" }]);
  }

  pin(id: string): void {
    this.#pins.push(id);
  }

  /** An order that somebody hid in the text. */
  order(text: string): string {
    this.#orders.push(text);
    return text;
  }

  call(tool: string, input: Record<string, unknown>, output: unknown): Part {
    return this.#part(tool, { state: "output-available", input, output });
  }

  /** As tools are stored whose names were not known when the answer was written: those of other servers. */
  dynamic(tool: string, input: Record<string, unknown>, output: unknown): Part {
    const { toolCallId } = this.#part(tool, {}) as { toolCallId: string };
    return { type: "dynamic-tool", toolName: tool, toolCallId, state: "output-available", input, output };
  }

  failed(tool: string, input: Record<string, unknown>, errorText: string): Part {
    return this.#part(tool, { state: "output-error", input, errorText });
  }

  denied(tool: string, input: Record<string, unknown>, reason: string): Part {
    const approval = { id: `approval-${this.#calls}`, approved: false, reason };
    return this.#part(tool, { state: "output-denied", input, approval });
  }

  thought(text: string): Part {
    return { type: "reasoning", text, state: "done" };
  }

  /** Questions and answers about nothing that matters. */
  chatter(pairs: number, bank: Bank, sentences = 2): void {
    for (let pair = 0; pair < pairs; pair++) {
      this.user(this.say(bank.asks, sentences));
      this.answer(this.say(bank.answers, sentences + 1));
    }
  }

  /** Some sentences, each once. */
  say(from: readonly string[], count: number): string {
    const first = this.random(from.length);
    const said = Array.from({ length: Math.min(count, from.length) }, (_, i) => from[(first + i) % from.length] ?? "");
    return said.map((text) => text.replaceAll("{n}", () => String(2 + this.random(97)))).join(" ");
  }

  /** Ends a round with a question that is really asked. */
  round(ask: string, ...calls: LiveCall[]): void {
    this.#rounds.push({ messages: this.#messages, ask: `${ask} ${this.mark}`, calls });
    this.#count++;
    this.#messages = [];
  }

  end(): Conversation {
    return {
      ...{ tools: {}, ...this.#start },
      ...{ rounds: this.#rounds, pins: this.#pins, orders: this.#orders },
    };
  }

  #part(tool: string, rest: Record<string, unknown>): Part {
    return { type: `tool-${tool}`, toolCallId: `call-${this.#start.name}-${this.#calls++}`, ...rest } as Part;
  }

  #add(role: "user" | "assistant", parts: Part[]): string {
    const id = `${this.#start.name}-${this.#count++}`;
    this.#messages.push({ id, role, parts });
    return id;
  }
}

const step: Part = { type: "step-start" };

/** The mark of a message. */
export function markOf(name: string, count: number): string {
  return `(${name}/${count})`;
}

/** All marks in a text. */
export function marksIn(text: string): string[] {
  return text.match(/\([a-z-]+\/\d+\)/g) ?? [];
}
