import { describe, expect, test } from "vitest";
import { CLASSES, openEither } from "./both-classes.ts";
import { user } from "./client.ts";

const MESSAGES = 5_000;

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
