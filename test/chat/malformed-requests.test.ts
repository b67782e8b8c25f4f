import { describe, expect, test } from "vitest";
import { CLASSES, openEither } from "./both-classes.ts";
import { textIn, user } from "./client.ts";

const deep = `{"messages":${"[".repeat(5000)}${"]".repeat(5000)}}`;
const lone = (message: unknown) => ({ messages: [message] });
const withParts = (...parts: unknown[]) => lone({ id: "u1", role: "user", parts });

/** Bodies of requests that nobody can answer. */
const BODIES: readonly unknown[] = [
  ...["", " ", "{", "}", "nul", "undefined", "NaN", "'{}'", '{"messages":[}', '{"messages":[]', "\u0000", "💥", deep],
  ...["null", "true", "7", '"text"', "[]", "[[]]", '[{"messages":[]}]'],
  ...[{}, { message: null }, { messages: null }, { messages: 7 }, { messages: "[]" }, { messages: {} }],
  ...[{ Messages: [] }, { messages: { length: 1 } }, { body: { messages: [] } }, { trigger: "submit-message" }],
  ...[lone(null), lone(7), lone("hello"), lone([]), lone({}), lone({ id: "u1" }), lone({ id: "u1", role: "user" })],
  ...[lone({ id: "", role: "user", parts: [{ type: "text", text: "x" }] }), lone({ id: 7, role: "user", parts: [] })],
  ...[lone({ id: "i".repeat(1000), role: "user", parts: [] }), lone({ id: "\ud800", role: "user", parts: [] })],
  ...[lone({ id: "u1", role: "king", parts: [] }), lone({ id: "u1", role: "user", parts: {} })],
  ...[withParts(), withParts(null), withParts("text"), withParts([]), withParts({}), withParts({ type: "" })],
  ...[withParts({ type: "text" }), withParts({ type: "text", text: 7 }), withParts({ type: "nothing" })],
  ...[withParts({ type: "file" }), withParts({ type: "file", mediaType: "image/png", url: "no address" })],
  ...[withParts({ type: "tool-pay", toolCallId: "c1", state: "output-available", output: 1 })],
  ...[withParts({ type: "data-x" }), withParts({ type: "text", text: "fine" }, { type: "text" })],
  ...[7, "x", {}, [7], [{}], [{ name: 7 }]].map((clientTools) => ({ messages: [user("u1")], clientTools })),
];

/** Frames around a body that are none. */
const INITS: readonly unknown[] = [
  ...[undefined, null, 7, "POST", [], {}],
  ...[{ method: "GET", body: "{}" }, { body: JSON.stringify({ messages: [user("u1")] }) }, { method: "POST" }],
  ...[null, 7, true, [], { messages: [user("u1")] }].map((body) => ({ method: "POST", body })),
];

describe.each(CLASSES)("%s", (which) => {
  test("a request with an id that cannot be read ends with one error frame that says why, and changes nothing", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    const other = await kit.connect();
    const bodies = BODIES.map((body) => (typeof body === "string" ? body : JSON.stringify(body)));
    const inits = [...bodies.map((body): unknown => ({ method: "POST", body })), ...INITS];
    const ids = [...inits.keys()].map((n) => `bad-${n}`);
    for (const [n, init] of inits.entries()) client.send({ type: "cf_agent_use_chat_request", id: `bad-${n}`, init });
    client.send({ type: "cf_agent_use_chat_request", id: "x".repeat(1000), init: { method: "POST", body: "{}" } });
    // `onChatError` is asked first, and may take its time.
    for (const id of [...ids, "x".repeat(1000)]) await client.done(id);
    await client.flushed();
    for (const id of [...ids, "x".repeat(1000)]) {
      expect([inits[ids.indexOf(id)], client.of(id)]).toEqual([
        inits[ids.indexOf(id)],
        [expect.objectContaining({ id, done: true, error: true, body: expect.stringMatching(/\w+ \w+/) as unknown })],
      ]);
    }
    await other.flushed();
    expect(other.frames).toEqual([]);
    expect(await kit.stored()).toEqual([]);
    expect(kit.model.calls).toEqual([]);
    // The socket goes on.
    client.request("good", [user("u1")]);
    expect(await client.done("good")).toMatchObject({ outcome: "completed" });
  });

  test("a body that cannot be read is answered with 400, a code and words, and changes nothing", async () => {
    const kit = await openEither(which);
    for (const body of BODIES) {
      const response = await kit.post("/chat", body);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect([body, response.status, error]).toEqual([
        body,
        400,
        { code: "bad_input", message: expect.stringMatching(/\w+ \w+/) as unknown },
      ]);
    }
    expect(await kit.stored()).toEqual([]);
    expect(kit.model.calls).toEqual([]);
  });

  test("a request that is known stays what it is when it comes again with a body that cannot be read", async () => {
    const gate = Promise.withResolvers<string>();
    const kit = await openEither(which, () => gate.promise);
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    client.send({ type: "cf_agent_use_chat_request", id: "r1", init: { method: "POST", body: "{" } });
    await client.flushed();
    gate.resolve("fine");
    expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
    expect(client.of("r1").filter(({ error }) => error === true)).toEqual([]);
    expect((await kit.stored()).map(textIn)).toEqual(["u1", "fine"]);
  });
});
