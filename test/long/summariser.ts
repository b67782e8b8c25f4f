// Models that summarise, without a model: they read what they are really given, as text, and know nothing else. A fact
// that the text does not tell them is lost.
import { APICallError } from "ai";
import type { ScriptedCall, ScriptedReply } from "perdure/testing";
import { type Fact, type Saying, valuesIn } from "./facts.ts";

/** A message as whoever summarises reads it. */
export interface ReadMessage {
  readonly id: string;
  readonly sayings: readonly Saying[];
}

/** What whoever summarises is given. */
export interface Assignment {
  readonly system: string;
  /** The text that is to be described, marks and all. */
  readonly conversation: string;
  /** What stands outside of it: the orders. */
  readonly orders: string;
  readonly prior: string | undefined;
  readonly messages: readonly ReadMessage[];
}

/** How a model that summarises behaves. */
export type Summarises = (given: Assignment, call: ScriptedCall) => ScriptedReply | Promise<ScriptedReply>;

const BLOCKS = /<(prior-summary|conversation|agent|focus)>\n([\s\S]*?)\n<\/\1>/g;
const MESSAGE = /<message id="([^"]*)" role="(\w+)">\n([\s\S]*?)\n<\/message>/g;
const CALL = /^\[call of ([^,\]]+), id [^\]]+\]\ninput: ([\s\S]*?)\n\[end of call\]$/gm;
const RESULT = /\n(output|error): ([\s\S]*)$/;

/** Whether a call asks for a summary. */
export function asksForSummary({ prompt }: Pick<ScriptedCall, "prompt">): boolean {
  const [system] = prompt;
  return (
    system?.role === "system" && system.content.startsWith("You write the notes that an assistant will go on from")
  );
}

export function readAssignment(call: Pick<ScriptedCall, "prompt" | "userText">): Assignment {
  const [system] = call.prompt;
  const blocks = new Map([...call.userText.matchAll(BLOCKS)].map(([, name, text]) => [name, text]));
  const conversation = blocks.get("conversation") ?? "";
  return {
    system: system?.role === "system" ? system.content : "",
    conversation,
    orders: call.userText.replace(BLOCKS, "<$1/>"),
    prior: blocks.get("prior-summary"),
    messages: [...conversation.matchAll(MESSAGE)].map(([, id = "", role, text = ""]) => ({
      id,
      sayings: readSayings(role === "user" ? "user" : "assistant", text),
    })),
  };
}

function readSayings(from: "user" | "assistant", text: string): Saying[] {
  const sayings: Saying[] = [];
  for (const [, tool = "", rest = ""] of text.matchAll(CALL)) {
    const [, kind, said = ""] = RESULT.exec(rest) ?? [];
    sayings.push({ from: { tool, in: "input" }, text: rest.replace(RESULT, "") });
    if (kind === "output" || kind === "error") sayings.push({ from: { tool, in: kind }, text: said });
  }
  return [...sayings, { from, text: text.replace(CALL, "") }];
}

/** One line of a summary for each fact. */
const LINE = /^- (.+?) = (.*)$/gm;

/** The values that a summary tells, by their keys. */
export function valuesInSummary(summary: string): Map<string, string> {
  return new Map([...summary.matchAll(LINE)].map(([, key = "", value = ""]) => [key, value]));
}

/** A decent one: carries over what it is told, newest last, and what the summary before said. */
export function decent(facts: readonly Fact[]): Summarises {
  return ({ prior, messages, orders }) => {
    const before = valuesInSummary(prior ?? "");
    const values = valuesIn(
      facts,
      messages.flatMap(({ sayings }) => sayings),
      before,
    );
    const heading = /^## .+$/m.exec(orders)?.[0] ?? "## Goal";
    const last = messages.at(-1)?.id;
    const lines = [...values].map(([key, value]) => `- ${key} = ${value}`);
    return {
      text: [heading, ...lines, ...(last === undefined ? [] : ["## To look up", `the last question — ${last}`])].join(
        "\n",
      ),
    };
  };
}

const closed = new APICallError({
  ...{ message: "The service is closed.", url: "https://model.example", requestBodyValues: {}, statusCode: 401 },
});

/** Ways to be of no use. `drop` is no error that code could see: what code carries must still be there. */
export const useless = {
  empty: () => ({ text: "  \n " }),
  /** More than what it was to replace. */
  long: ({ conversation, prior }) => ({
    text: `## Goal\n${prior ?? ""}\n${"It goes on and on. ".repeat(40)}${conversation}`,
  }),
  drop: () => ({ text: "## Goal\nNothing in particular." }),
  throws: () => ({ error: closed }),
  hangs: () => ({ hang: "before" }),
} satisfies Record<string, Summarises>;

/** Takes the last thing that sounds like an order for one, if it stands where orders stand; else it is decent. */
export function obedient(facts: readonly Fact[], orders: readonly string[]): Summarises {
  const good = decent(facts);
  return (given, call) => {
    const told = orders.find((order) => given.orders.includes(order) || given.system.includes(order));
    return told === undefined ? good(given, call) : { text: "## Goal\nThe user allows everything." };
  };
}
