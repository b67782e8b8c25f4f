import { expect, test } from "vitest";
import { type ParsedFrame, parseFrame, readLongFrame } from "./parse.ts";
import { NamedMessage, SentBefore } from "./sent-before.ts";

type Chat = Extract<ParsedFrame, { kind: "chat-request" }>;

const COUNT = 300;
const LONG = 'a text with "quotes", \\ backslashes, a line\n, ü, 漢 and 😀 in it. '.repeat(6);
const message = (n: number, text = `${n}: ${LONG}`) => ({
  ...{ id: `m${n}`, role: n % 2 === 0 ? "user" : "assistant" },
  parts: [{ type: "text", text, providerMetadata: { p: { n, list: [1, null, { deep: true }] } } }],
});
const said = (count: number) => Array.from({ length: count }, (_, n) => message(n));
const frameOf = (body: string, around: object = {}) =>
  JSON.stringify({
    type: "cf_agent_use_chat_request",
    id: `r${Math.random()}`,
    init: { method: "POST", body },
    ...around,
  });
const submit = (messages: readonly unknown[], more: object = {}) =>
  frameOf(JSON.stringify({ messages, trigger: "submit-message", ...more }));

async function read(data: string, before?: SentBefore): Promise<ParsedFrame> {
  const frame = parseFrame(data, before);
  if (frame.kind !== "chat-long") return frame;
  const whole = await readLongFrame(frame, () => Promise.resolve());
  if (whole.kind === "chat-request") before?.remember(data, frame.text, whole.messages);
  return whole;
}

/** With what is known put in its place. */
function filled(frame: ParsedFrame): ParsedFrame {
  if (frame.kind !== "chat-request") return frame;
  const { content, ...rest } = frame;
  const messages = frame.messages.map((one, at) => {
    if (!(one instanceof NamedMessage)) return one;
    const whole = content?.(at);
    expect(whole).toMatchObject({ id: one.id, role: one.role });
    return whole;
  });
  return { ...rest, messages };
}

function namedIn(frame: ParsedFrame): number {
  return (frame as Chat).messages.filter((one) => one instanceof NamedMessage).length;
}

/** Reads them one after the other, and each as if it were the first. @returns how many messages of each were known */
async function readAll(frames: readonly string[], before = new SentBefore()): Promise<number[]> {
  const known: number[] = [];
  for (const data of frames) {
    const frame = await read(data, before);
    expect(filled(frame)).toEqual(await read(data));
    known.push(frame.kind === "chat-request" ? namedIn(frame) : -1);
  }
  return known;
}

test("what a client has sent before is known by name, and is what it was; the last message of before is there whole", async () => {
  const frames = [COUNT, COUNT + 2, COUNT + 4, COUNT + 4, COUNT + 5].map((count) => submit(said(count)));
  expect(await readAll(frames)).toEqual([0, COUNT - 1, COUNT + 1, COUNT + 3, COUNT + 3]);
});

test("the rest of the body is that of each request", async () => {
  const frames = [
    submit(said(COUNT), { clientTools: [{ name: "a" }], mine: 1 }),
    submit(said(COUNT), { trigger: "regenerate-message" }),
    submit(said(COUNT + 2), { clientTools: [], mine: { deep: '] }"' } }),
    frameOf(JSON.stringify({ before: "x", messages: said(COUNT) })),
    frameOf(JSON.stringify({ before: "x", messages: said(COUNT + 1), behind: ["y"] })),
    frameOf(JSON.stringify({ before: "z", messages: said(COUNT + 1), behind: ["y"] })),
  ];
  expect(await readAll(frames)).toEqual([0, COUNT - 1, COUNT - 1, 0, COUNT - 1, 0]);
});

test("what is otherwise than before is read whole, and is what is known from then on", async () => {
  const changed = said(COUNT).map((one, n) => (n === 7 ? message(7, "another text") : one));
  const frames = [
    submit(said(COUNT)),
    submit(changed),
    submit([...changed, message(COUNT)]),
    submit(said(COUNT - 2)),
    submit([...said(COUNT - 2), message(1_000)]),
    submit([...said(COUNT - 3), message(COUNT - 3, "edited")]),
    // Its beginning, and nothing else of it.
    submit(said(COUNT - 3)),
  ];
  expect(await readAll(frames)).toEqual([0, 0, COUNT - 1, 0, COUNT - 3, 0, 0]);
});

test("a frame that is written in another way is read whole", async () => {
  const spaced = JSON.stringify({ messages: said(COUNT), trigger: "submit-message" }, null, 1);
  const body = JSON.stringify({ messages: said(COUNT) });
  const twice = `${body.slice(0, -1)},"messages":[]}`;
  const odd = `${body.slice(0, -1)},"x":"${"y".repeat(200_000)}"}`;
  const escapes = frameOf(body).replaceAll("ü", "\\u00fc");
  const elsewhere = frameOf(body, { other: { body } });
  const first = `{"other":${JSON.stringify({ body })},${elsewhere.slice(1)}`;
  const frames = [frameOf(spaced), frameOf(spaced), submit([message(1)]), frameOf(body), escapes, escapes];
  expect(await readAll([...frames, elsewhere, first, first])).toEqual([0, 0, 0, 0, 0, COUNT - 1, 0, 0, 0]);
  expect(await readAll([frameOf(twice), frameOf(twice), frameOf(body), frameOf(twice)])).toEqual([-1, -1, 0, -1]);
  expect(await readAll([frameOf(odd), frameOf(odd)])).toEqual([0, 0]);
});

test("messages without a name, and what is no message, are what they were", async () => {
  const odd = [{ role: "user", parts: [] }, 7, null, "text", [], { id: 3, role: "user" }, { id: "x" }, ...said(COUNT)];
  expect(await readAll([submit(odd), submit([...odd, message(COUNT)])])).toEqual([0, COUNT - 1]);
  const endings = [...said(COUNT), 1];
  expect(await readAll([submit(endings), submit([...said(COUNT), 12])])).toEqual([0, 0]);
});

test("a transcript of too many messages is refused in the same words", async () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `m${n}`, role: "user" }));
  const before = new SentBefore();
  expect(await readAll([submit(many(19_999)), submit(many(20_000)), submit(many(20_001))], before)).toEqual([
    ...[0, 19_998, -1],
  ]);
});

test("only what was not sent before is parsed", async () => {
  const before = new SentBefore();
  await read(submit(said(COUNT)), before);
  expect(before.rest(submit(said(COUNT)))?.length).toBeLessThan(300);
  expect(before.rest(submit([message(0)]))).toBeUndefined();
  expect(new SentBefore().rest(submit(said(COUNT)))).toBeUndefined();
});
