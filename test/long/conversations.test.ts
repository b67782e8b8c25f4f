import { expect, test } from "vitest";
import { serialiseMessage } from "../../src/context/serialise.ts";
import { conversations } from "./conversations/index.ts";
import { sayingsOf, valuesIn } from "./facts.ts";
import { decent, readAssignment, valuesInSummary } from "./summariser.ts";
import { marksIn } from "./talk.ts";

const all = conversations.map((make) => make());
const messagesOf = (at: number) => all[at]?.rounds.flatMap(({ messages }) => messages) ?? [];

test("there are enough of them, long enough, in enough scripts, the same ones in every run", () => {
  expect(all.length).toBeGreaterThanOrEqual(12);
  expect(new Set(all.map(({ script }) => script)).size).toBeGreaterThanOrEqual(11);
  expect(JSON.stringify(conversations.map((make) => make()))).toBe(JSON.stringify(all));
  for (const [at, { name, rounds, pins, facts }] of all.entries()) {
    const messages = messagesOf(at);
    expect(rounds.length, name).toBeGreaterThanOrEqual(3);
    expect(messages.length, name).toBeGreaterThan(250);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
    // Each message has a mark of its own.
    expect(new Set(messages.flatMap((message) => marksIn(JSON.stringify(message)))).size).toBe(messages.length);
    expect(pins.length, name).toBeGreaterThan(0);
    expect(facts.length, name).toBeGreaterThanOrEqual(7);
  }
});

test("each fact is said in its conversation, and some are replaced", () => {
  for (const [at, { name, facts, rounds }] of all.entries()) {
    const sayings = messagesOf(at).flatMap(sayingsOf);
    const tools = [...rounds.flatMap(({ calls }) => calls.map(({ toolName }) => toolName))];
    const last = valuesIn(facts, sayings);
    const unsaid = facts.filter(
      ({ key, from }) => !last.has(key) && !(typeof from === "object" && tools.includes(from.tool)),
    );
    expect(
      unsaid.map(({ key }) => key),
      name,
    ).toEqual([]);
    const first = valuesIn(facts, (rounds[0]?.messages ?? []).flatMap(sayingsOf));
    expect([...first].filter(([key, value]) => last.get(key) !== value).length, `${name}: replaced`).toBeGreaterThan(0);
  }
});

test("whoever summarises can read every fact off the text that is really sent", () => {
  for (const [at, { name, facts }] of all.entries()) {
    const messages = messagesOf(at);
    const items = messages.map((message) => serialiseMessage(message, message.parts));
    const given = readAssignment({
      prompt: [],
      userText: `<conversation>\n${items.join("\n")}\n</conversation>\n\nWrite.`,
    });
    expect(given.messages.map(({ id }) => id)).toEqual(messages.map(({ id }) => id));
    const reply = decent(facts)(given, {} as never) as { text: string };
    const truth = valuesIn(facts, messages.flatMap(sayingsOf));
    expect(Object.fromEntries(valuesInSummary(reply.text)), name).toEqual(Object.fromEntries(truth));
  }
});
