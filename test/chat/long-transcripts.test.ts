import { describe, expect, test } from "vitest";
import { CLASSES, openEither } from "./both-classes.ts";
import { user } from "./client.ts";

const MESSAGES = 5_000;
/** More characters than are parsed in one go. */
const LONG_MESSAGES = 400;

/** What a client shows that has been here for long: its own words, and answers of the agent with much in them. */
function shown(count: number): unknown[] {
  return Array.from({ length: count }, (_, n) =>
    n % 2 === 0
      ? user(`u${n}`)
      : {
          ...{ id: `a${n}`, role: "assistant" },
          parts: Array.from({ length: 6 }, (_, part) => ({ type: "text", text: `answer ${n}`, state: "done", part })),
        },
  );
}

const PAGE = 200;
/** The client's own words among what it shows, as it pushed them over time. */
function pushes(messages: readonly unknown[]): string[] {
  const own = messages.filter((_, n) => n % 2 === 0);
  return Array.from({ length: Math.ceil(own.length / PAGE) }, (_, page) =>
    JSON.stringify({ type: "cf_agent_chat_messages", messages: own.slice(page * PAGE, (page + 1) * PAGE) }),
  );
}

describe.each(CLASSES)("%s", (which) => {
  test("a client that shows 5,000 messages sends all of them with the next one; what it sends behind that waits for it", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    const messages = shown(MESSAGES);
    for (const push of pushes(messages)) client.raw(push);
    await client.flushed();
    // More values than any other frame may have.
    client.request("r1", [...messages, user("new")]);
    client.send({ type: "cf_agent_stream_resume_request", probeId: "behind" });
    expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
    const stored = await kit.stored();
    expect(stored).toHaveLength(MESSAGES / 2 + 2);
    expect(stored.at(-2)).toMatchObject({ id: "new" });
    // Handled before the request, there would have been nothing to resume.
    const probed = await client.frame((frame) => frame.probeId === "behind" || frame.id === "r1");
    expect(probed.type).not.toBe("cf_agent_stream_resume_none");
  });

  test.each([
    ["goes on", false],
    ["goes on after everything was deleted", true],
  ])("a client that %s gets the same, whether the agent knows what it sent before or not", async (_what, cleared) => {
    const play = async (isKnown: boolean) => {
      const kit = await openEither(which);
      let client = await kit.connect();
      const long = shown(LONG_MESSAGES).map((one, n) => ({
        ...(one as object),
        metadata: { n, more: "x".repeat(400) },
      }));
      const send = async (id: string, messages: readonly unknown[], extras = {}) => {
        if (!isKnown) client = await kit.connect();
        client.request(id, messages, extras);
        expect(await client.done(id)).toMatchObject({ outcome: "completed" });
        return [...messages, (await kit.stored()).at(-1)];
      };
      const first = await send("r1", [...long, user("q1")]);
      const second = await send("r2", [...first, user("q2")]);
      if (cleared) {
        const other = await kit.connect();
        other.clear();
        await other.flushed();
      }
      expect(await kit.stored()).toHaveLength(cleared ? 0 : LONG_MESSAGES / 2 + 4);
      const third = await send("r3", [...second, user("q3")]);
      await send("r4", third.slice(0, -1), { trigger: "regenerate-message" });
      await send("r5", [...third.slice(0, -2), user("q3", "asked in another way")]);
      return (await kit.stored()).map(({ role, metadata, parts }) => ({ role, metadata, parts }));
    };
    const known = await play(true);
    expect(known).toEqual(await play(false));
    expect(known.at(-2)?.parts).toMatchObject([{ text: "asked in another way" }]);
    expect(known.length).toBeGreaterThan(LONG_MESSAGES / 2);
  });

  test("a transcript of 200,000 messages is refused with words, over sockets and HTTP, and nothing is stored", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    const flood = Array.from({ length: 200_000 }, (_, n) => ({ id: `m${n}`, role: "user", parts: [] }));
    client.request("r1", flood);
    const told = await client.done("r1");
    expect(told).toMatchObject({ error: true, body: expect.stringContaining("more than 20000 messages") as unknown });
    const response = await kit.post("/chat", { messages: flood });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "too_large" } });
    expect(await kit.stored()).toEqual([]);
    expect(kit.model.calls).toEqual([]);
  });

  test("a request adds 500 messages at most; one that adds more is refused and adds none", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    client.request(
      "r1",
      Array.from({ length: 501 }, (_, n) => user(`m${n}`)),
    );
    const told = await client.done("r1");
    expect(told).toMatchObject({ error: true, body: expect.stringContaining("at most 500 messages") as unknown });
    client.raw(
      JSON.stringify({
        type: "cf_agent_chat_messages",
        messages: Array.from({ length: 501 }, (_, n) => user(`m${n}`)),
      }),
    );
    await client.flushed();
    expect(await kit.stored()).toEqual([]);
    client.request(
      "r2",
      Array.from({ length: 500 }, (_, n) => user(`m${n}`)),
    );
    expect(await client.done("r2")).toMatchObject({ outcome: "completed" });
    expect(await kit.stored()).toHaveLength(501);
  });

  test.each([
    ["1,001 parts", { parts: Array.from({ length: 1_001 }, () => ({ type: "text", text: "x" })) }, "1001 parts"],
    ["20,000 values", { metadata: Array.from({ length: 20_000 }, () => 1) }, "more than 20000 values"],
  ])("a message of %s is refused with words, and nothing is stored", async (_what, fields, words) => {
    const kit = await openEither(which);
    const response = await kit.post("/chat", { messages: [{ ...user("u1"), ...fields }] });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({
      error: { code: "too_large", message: expect.stringContaining(words) as unknown },
    });
    expect(await kit.stored()).toEqual([]);
  });

  test.each([
    ["501 tools", Array.from({ length: 501 }, (_, n) => ({ name: `t${n}` }))],
    ["a mebibyte of schema", [{ name: "t", parameters: { description: "x".repeat(1024 * 1024) } }]],
  ])("a client that says it has %s is refused with words", async (_what, clientTools) => {
    const kit = await openEither(which);
    const response = await kit.post("/chat", { messages: [user("u1")], clientTools });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining("more than 500 tools, or more than 1048576 characters") as unknown },
    });
    expect(await kit.stored()).toEqual([]);
  });
});
