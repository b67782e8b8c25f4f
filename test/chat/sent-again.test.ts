// The same user message, sent again under another request id, as a client does that lost its connection.
import { describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { CLASSES, type EitherAgent, openEither } from "./both-classes.ts";
import { RESUMING, textIn, user } from "./client.ts";
import { readEvents } from "./events.ts";
import { refusal } from "../think/harness.ts";

const STREAM = { accept: "text/event-stream" };
const texts = async (kit: EitherAgent) => (await kit.stored()).map(textIn);
/** All answers in the tree, on the path or not. */
const answers = (kit: EitherAgent) =>
  kit.rows<{ parent: number }>("SELECT parent FROM perdure_message WHERE role = 'assistant'");

/** The first answer waits at the gate. */
function gated() {
  const gate = Promise.withResolvers<string>();
  return { gate, script: ({ index }: { index: number }) => (index === 0 ? gate.promise : `answer ${index + 1}`) };
}

describe.each(CLASSES)("%s", (which) => {
  test("the same message twice over the socket leaves one answer on the path, the other is its sibling", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    await client.done("r1");
    client.request("r2", [user("u1")]);
    expect(await client.done("r2")).toMatchObject({ outcome: "completed", messageIds: ["u1"] });
    expect(await texts(kit)).toEqual(["u1", "answer 2"]);
    const rows = await answers(kit);
    expect(rows).toHaveLength(2);
    expect(new Set(rows.map(({ parent }) => parent)).size).toBe(1);
    // The model was not shown its first answer.
    expect(kit.model.calls.at(-1)?.prompt.filter(({ role }) => role === "assistant")).toEqual([]);
  });

  test("the same message twice over HTTP leaves one answer on the path, the other is its sibling", async () => {
    const kit = await openEither(which);
    for (const id of ["r1", "r2"]) {
      const events = readEvents(await kit.post("/chat", { message: user("u1"), requestId: id }, STREAM));
      expect(await events.outcome()).toMatchObject({ requestId: id, outcome: "completed" });
    }
    expect(await texts(kit)).toEqual(["u1", "answer 2"]);
    const rows = await answers(kit);
    expect([rows.length, new Set(rows.map(({ parent }) => parent)).size]).toEqual([2, 1]);
  });

  test("sent again with the whole transcript before it, the conversation up to it stays", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    await client.done("r1");
    const before = await kit.stored();
    client.request("r2", [...before, user("u2")]);
    await client.done("r2");
    client.request("r3", [...before, user("u2")]);
    await client.done("r3");
    expect(await texts(kit)).toEqual(["u1", "answer 1", "u2", "answer 3"]);
  });

  test("sent again while its first turn runs, it joins that turn: one model call, one answer", async () => {
    const { gate, script } = gated();
    const kit = await openEither(which, script);
    const lost = await kit.connect();
    lost.request("r1", [user("u1")]);
    await until(() => kit.model.calls.length === 1);
    await lost.close();
    const back = await kit.connect();
    back.request("r2", [user("u1")]);
    expect(await back.done("r2")).toMatchObject({ outcome: "skipped", messageIds: ["u1"] });
    const http = await kit.post("/chat", { message: user("u1"), requestId: "r3" });
    expect([http.status, await http.json()]).toEqual([202, { id: "r1", status: "running" }]);
    const events = readEvents(await kit.post("/chat", { message: user("u1"), requestId: "r3" }, STREAM));
    const followed = readEvents(await fetch(`${kit.url}/chat/r3/stream`));
    gate.resolve("only once");
    expect(await back.done("r1")).toMatchObject({ outcome: "completed" });
    expect(await events.outcome()).toMatchObject({ requestId: "r1", outcome: "completed" });
    expect(await followed.outcome()).toMatchObject({ requestId: "r1", outcome: "completed" });
    expect([events.text, followed.text]).toEqual(["only once", "only once"]);
    // The joined request again, when all is over, is still the same request.
    back.request("r2", [user("u1")]);
    await back.flushed();
    expect(back.of("r2").map(({ outcome }) => outcome)).toEqual(["skipped", "skipped"]);
    await kit.stable();
    expect(await texts(kit)).toEqual(["u1", "only once"]);
    expect(kit.model.calls).toHaveLength(1);
  });

  test("sent again while its first turn waits, it joins that turn, and what waits behind it stays", async () => {
    const { gate, script } = gated();
    const kit = await openEither(which, script);
    const client = await kit.connect();
    client.request("r0", [user("u0")]);
    await until(() => kit.model.calls.length === 1);
    client.request("r1", [user("u0"), user("u1")]);
    client.request("r2", [user("u0"), user("u1"), user("u2")]);
    client.request("again", [user("u0"), user("u1")]);
    expect(await client.done("again")).toMatchObject({ outcome: "skipped" });
    gate.resolve("answer 1");
    await client.done("r2");
    await kit.stable();
    expect(await texts(kit)).toEqual(["u0", "answer 1", "u1", "answer 2", "u2", "answer 3"]);
  });

  test("sent again after the agent's life was cut off in the middle, it joins the turn that is carried on", async () => {
    const gate = Promise.withResolvers<string>();
    const kit = await openEither(which, ({ index }) => (index === 0 ? { text: "Half", hang: true } : gate.promise));
    const lost = await kit.connect();
    lost.request("r1", [user("u1")]);
    await lost.said("r1", "Half");
    await lost.close();
    await kit.nextLife();
    const back = await kit.connect();
    back.request("r2", [user("u1")]);
    expect(await back.done("r2")).toMatchObject({ outcome: "skipped" });
    gate.resolve(" and whole");
    await kit.stable();
    const stored = await kit.stored();
    expect(stored.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(textIn(stored[1])).toContain("whole");
    expect(await answers(kit)).toHaveLength(1);
  });

  test("sent again after its turn failed or was stopped, it gets an answer of its own", async () => {
    const kit = await openEither(which, ({ index }) => {
      if (index === 0) return { text: "half", error: refusal(400), errorAfter: 1 };
      return index === 1 ? { text: "half", hang: true } : "whole";
    });
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    expect(await client.done("r1")).toMatchObject({ outcome: "error" });
    client.request("r2", [user("u1")]);
    await until(() => kit.model.calls.length === 2);
    client.cancel("r2");
    client.request("r3", [user("u1")]);
    expect(await client.done("r3")).toMatchObject({ outcome: "completed" });
    expect(await texts(kit)).toEqual(["u1", "whole"]);
    kit.takeErrors();
  });

  test("the same request id again is still the same request", async () => {
    const kit = await openEither(which);
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    await client.done("r1");
    client.request("r1", [user("u1")]);
    await client.flushed();
    expect(kit.model.calls).toHaveLength(1);
    expect(await texts(kit)).toEqual(["u1", "answer 1"]);
  });
});

test("who comes back and sends again is offered what it has missed of the stream", async () => {
  const kit = await openEither("Think", () => ({ text: "Half of it", hang: true }));
  const first = await kit.connect();
  first.request("r1", [user("u1")]);
  await first.said("r1", "Half of it");
  const other = await kit.connect();
  await other.frame(({ type, id }) => type === RESUMING && id === "r1");
  other.ack("r1");
  await other.said("r1", "Half of it");
  other.request("r2", [user("u1")]);
  await other.done("r2");
  await other.flushed();
  // It has taken the stream already; and who asked first has all of it.
  first.request("r3", [user("u1")]);
  await first.done("r3");
  await first.flushed();
  expect([other.ofType(RESUMING).length, first.ofType(RESUMING).length]).toEqual([1, 0]);
  other.cancel("r1");
  await first.done("r1");
});
