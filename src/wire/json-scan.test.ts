import { expect, test } from "vitest";
import { readLongBody } from "./chat-text.ts";
import { JsonScan } from "./json-scan.ts";
import { MAX_JSON_DEPTH, readJson } from "./json.ts";

const scan = (text: string) => new JsonScan(text, "messages").run();

test.each([
  ["1", 1, 0],
  ['"[[["', 1, 0],
  [String.raw`"\"[[[\\"`, 1, 0],
  ["[1,2,3]", 4, 1],
  ['{"a":{"b":[1]},"c":"},{"}', 5, 3],
  ["[[[]]]", 4, 3],
])("%s has %d values in %d levels", (text, values, depth) => {
  expect(scan(text)).toMatchObject({ values, depth, isClosed: true });
});

test.each([
  ["rare quotes", `${"x".repeat(40)}\\"`],
  ["many quotes", '\\"'],
  ["backslashes at the end", `${"x".repeat(20)}\\\\`],
  ["escapes of all kinds", String.raw`\\\"\u0022[{,:\"}]`],
])("a text with %s ends where it ends", (_, piece) => {
  for (const times of [1, 3, 5_000]) {
    const text = `{"a":"${piece.repeat(times)}","id":"x"}`;
    expect(() => JSON.parse(text) as unknown).not.toThrow();
    expect(scan(text)).toMatchObject({ values: 3, depth: 1, isClosed: true, told: new Map([["id", "x"]]) });
  }
});

test("a scan that has enough looks no further", () => {
  const looked = new JsonScan(`[${"[],".repeat(1_000_000)}1]`);
  expect(looked.runUntil(() => looked.values > 10)).toBe(true);
  expect(looked.values).toBeLessThan(100_000);
});

test("what the outermost object says of itself is found, in any order and however it is written", () => {
  const { told } = scan(
    String.raw`{ "x": {"id": "inner"}, "\u0069d" : "a\"b", "type":"t", "txid": 7, "y": ["id", "z"] }`,
  );
  expect([...told]).toEqual([
    ["id", 'a"b'],
    ["type", "t"],
  ]);
});

test("a text that is looked at in small steps gives what it gives in one", () => {
  const text = JSON.stringify({ a: [1, { b: '"' }], messages: [{ id: "m1", x: [1, [2]] }, "x"], id: "q" });
  for (const chars of [1, 2, 3, 7]) {
    const stepped = new JsonScan(text, "messages");
    while (stepped.step(chars));
    const whole = scan(text);
    expect([stepped.values, stepped.depth, stepped.list, [...stepped.told]]).toEqual([
      whole.values,
      whole.depth,
      whole.list,
      [...whole.told],
    ]);
  }
});

const long = (messages: readonly unknown[], rest: object = {}) =>
  JSON.stringify({ before: "x", messages, ...rest, pad: "p".repeat(250_000) });
let breaths = 0;
const breathe = async () => void breaths++;

test("a long transcript is read in pieces, and is what it would be in one", async () => {
  const messages = Array.from({ length: 9_000 }, (_, n) => ({
    id: `m${n}`,
    parts: [{ type: "text", text: `"],[{${n}` }],
  }));
  const text = long(messages, { after: { messages: [1] } });
  breaths = 0;
  expect(await readLongBody(text, breathe)).toEqual({ value: JSON.parse(text) as unknown });
  expect(breaths).toBeGreaterThan(3);
});

test.each([
  ['{"messages":[1,2', "not JSON"],
  ['{"messages":[1,2}', "not JSON"],
  ['{"messages":[1,,2]', "not JSON"],
  ['{"messages":[],"messages":[1]', "not JSON"],
  ['{"messages":[1]]', "not JSON"],
  [`{"messages":[${"[".repeat(300)}${"]".repeat(300)}]`, "nested deeper than 256 levels"],
  [`{"messages":[${"1,".repeat(20_000)}1]`, "more than 20000 messages"],
  [`{"messages":[[${"1,".repeat(1_000_000)}1]]`, "more than 1000000 values"],
  [`{"messages":[],"other":[${"1,".repeat(100_000)}1]`, "more than 50000 values"],
])("%# a long body that is wrong is refused with words", async (start, words) => {
  const read = await readLongBody(`${start},"pad":"${"p".repeat(250_000)}"}`, breathe);
  expect(read).toHaveProperty("reason", expect.stringContaining(words));
});

test("a long body is refused as soon as it is too much", async () => {
  breaths = 0;
  const read = await readLongBody(`{"messages":[],"x":[${"[],".repeat(3_000_000)}1]}`, breathe);
  expect(read).toHaveProperty("code", "too_large");
  expect(breaths).toBe(0);
});

test("keys called __proto__ go away in pieces too", async () => {
  const text = `{"messages":[{"id":"a","__proto__":{"x":1}}],"pad":"${"p".repeat(250_000)}"}`;
  const read = await readLongBody(text, breathe);
  expect(read).toHaveProperty("value.messages", [{ id: "a" }]);
});

test("every text that is JSON is JSON for both", () => {
  const value = { messages: [{ a: [1, "\\", '"', "\u2028", { b: null }] }], id: "x", n: -1.5e3 };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
    expect(readJson(text, MAX_JSON_DEPTH, 1)).toMatchObject({ ok: false, why: "too-many" });
    expect(readJson(text, MAX_JSON_DEPTH, 20)).toEqual({ ok: true, value });
  }
});
