// What a person wrote is kept whole or refused; it is never cut.
import { describe, expect, test } from "vitest";
import type { Think } from "perdure";
import { CLASSES, type EitherAgent, openEither } from "./both-classes.ts";
import { type Frame, TRANSCRIPT, textIn, user } from "./client.ts";
import { readEvents } from "./events.ts";

const LONG = "Whatever I wrote. ".repeat(140_000);
const TOO_LONG = "é".repeat(4_100_000);
const PICTURE = {
  type: "file",
  mediaType: "image/png",
  url: `data:image/png;base64,${"A".repeat(3_000_000)}`,
} as const;
const STREAM = { accept: "text/event-stream" };
const shown = ({ model }: EitherAgent) => JSON.stringify(model.calls.at(-1)?.prompt).length;

describe.each(CLASSES)("%s", (which) => {
  test("a text of 2.5 MB over the socket is stored whole, shown whole to all clients, and sent back is no edit", async () => {
    expect(LONG.length).toBeGreaterThan(2_500_000);
    const kit = await openEither(which, ({ index }) => `answer ${index + 1}`);
    const client = await kit.connect();
    const other = await kit.connect();
    client.request("r1", [user("u1", LONG)]);
    await client.done("r1");
    const told = await other.frame(({ type }: Frame) => type === TRANSCRIPT);
    expect(textIn(told.messages?.[0]) === LONG).toBe(true);
    const stored = await kit.stored();
    expect(textIn(stored[0]) === LONG).toBe(true);
    expect(stored[0]?.metadata).toBeUndefined();
    client.request("r2", [...stored, user("u2")]);
    await client.done("r2");
    expect((await kit.stored()).map(({ id }) => id)).toEqual(["u1", stored[1]?.id, "u2", expect.anything()]);
    const back = await kit.connect();
    expect(textIn(back.greeting?.messages?.[0]) === LONG).toBe(true);
  });

  test("a text of 2.5 MB over HTTP, and a picture of 3 MB, are stored whole", async () => {
    const kit = await openEither(which);
    const message = { id: "u1", role: "user", parts: [{ type: "text", text: LONG }, PICTURE] };
    await readEvents(await kit.post("/chat", { message, requestId: "r1" }, STREAM)).outcome();
    expect(JSON.stringify((await kit.stored())[0]) === JSON.stringify(message)).toBe(true);
    expect(shown(kit)).toBeGreaterThan(LONG.length);
  });

  test("server code may say as much, with and without a turn", async () => {
    const kit = await openEither(which);
    const agent = await kit.agent();
    await agent.persistMessages([user("u1", LONG)]);
    await agent.saveMessages([user("u2", LONG)]);
    if (which === "Think") {
      const think = agent as Think;
      await think.runTurn({ input: LONG });
      await think.submitMessages([user("u3", LONG)]);
      await think.addMessages([user("u4", LONG)]);
    }
    await kit.stable();
    const said = (await kit.stored()).filter(({ role }) => role === "user");
    expect(said.map((message) => textIn(message) === LONG)).toEqual(
      Array.from({ length: which === "Think" ? 5 : 2 }, () => true),
    );
  });

  test("a message that is too large to be kept whole is refused with the bound, before anything is stored", async () => {
    const kit = await openEither(which, undefined, { host: { limits: { frameBytes: 100_000_000 } } });
    const client = await kit.connect();
    const refusal = /8200\d+ bytes, and a message may take 8000000; send it in several messages/;
    client.request("r1", [user("u1", TOO_LONG)]);
    expect(await client.done("r1")).toMatchObject({
      error: true,
      body: expect.stringMatching(refusal) as unknown,
    });
    const response = await kit.post("/chat", { message: user("u1", TOO_LONG) });
    const answer: unknown = await response.json();
    expect([response.status, answer]).toEqual([
      413,
      { error: { code: "too_large", message: expect.stringMatching(refusal) as unknown } },
    ]);
    const agent = await kit.agent();
    const large = { code: "too_large", message: expect.stringMatching(refusal) as unknown };
    const said = [user("u1", TOO_LONG)];
    const think = agent as Think;
    const ways = [
      () => agent.persistMessages(said),
      () => agent.saveMessages(said),
      ...(which === "Think" ? [() => think.runTurn({ input: TOO_LONG }), () => think.submitMessages(TOO_LONG)] : []),
      ...(which === "Think" ? [() => think.addMessages(said)] : []),
    ];
    for (const way of ways) await expect(way()).rejects.toMatchObject(large);
    expect(await kit.stored()).toEqual([]);
    expect(kit.model.calls).toEqual([]);
  });
});

test("messages that waited and became one keep all that they said", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await openEither("AIChatAgent", () => gate.promise);
  (await kit.agent()).messageConcurrency = "merge";
  const client = await kit.connect();
  client.request("r0", [user("u0")]);
  client.request("r1", [user("u0"), user("u1", LONG)]);
  client.request("r2", [user("u0"), user("u1", LONG), user("u2", LONG)]);
  await client.flushed();
  gate.resolve("fine");
  await client.done("r2");
  await kit.stable();
  expect((await kit.stored()).map((message) => textIn(message).length)).toEqual([2, 4, 2 * LONG.length, 4]);
});
