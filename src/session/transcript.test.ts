import { expect, test } from "vitest";
import { insertMessage } from "../store/message.ts";
import { setLeaf } from "../store/session.ts";
import { probeHost, type ProbeHost } from "../../test/chat/probe-host.ts";
import { MAX_MESSAGE_BYTES } from "../message/bound.ts";
import type { UIMessage } from "../message/types.ts";
import { mergeWaiting } from "../turn/intake/accept.ts";
import { turnRow } from "../../test/chat/turn-row.ts";
import { Transcript } from "./transcript.ts";

function user(id: string, text = id): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

function assistant(id: string, ...parts: UIMessage["parts"]): UIMessage {
  return { id, role: "assistant", parts: parts.length > 0 ? parts : [{ type: "text", text: id }] };
}

const call = (toolCallId: string, output: unknown): UIMessage["parts"][number] => ({
  type: "tool-read",
  toolCallId,
  state: "output-available",
  input: {},
  output,
});

const ids = (transcript: Transcript) => transcript.list().map(({ id }) => id);

function insertRow({ host }: ProbeHost, id: string, body: string): void {
  const parent = new Transcript(host, "main").leaf;
  const seq = insertMessage(host, { id, session: "main", parent, role: "user", body, createdAt: 0 });
  setLeaf(host, "main", seq, 0);
}

test("messages come back in the order in which they were added, also after a restart", async () => {
  const probe = await probeHost();
  const transcript = new Transcript(probe.host, "main");
  for (const id of ["c", "a", "b"]) transcript.put(user(id));
  transcript.put(user("a", "edited"));
  for (const view of [transcript, new Transcript(probe.host, "main")]) {
    expect(ids(view)).toEqual(["c", "a", "b"]);
    expect(view.isEmpty).toBe(false);
    expect(view.last()?.id).toBe("b");
    expect(view.last("b")?.id).toBe("a");
    expect(view.list("a").map(({ id }) => id)).toEqual(["c", "b"]);
    expect(view.idsAfter("c")).toEqual(["a", "b"]);
    expect(view.idsAfter("nobody")).toEqual([]);
    expect(view.role("a")).toBe("user");
    expect(view.role("nobody")).toBeUndefined();
    expect(view.get("a")).toEqual(user("a", "edited"));
    expect(JSON.parse(view.json())).toEqual([user("c"), user("a", "edited"), user("b")]);
  }
});

test("one message can be left out of the JSON, or replaced in its place", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  for (const id of ["a", "b", "c"]) transcript.put(user(id));
  expect(JSON.parse(transcript.json({ id: "b", json: undefined }))).toEqual([user("a"), user("c")]);
  expect(JSON.parse(transcript.json({ id: "b", json: '{"x":1}' }))).toEqual([user("a"), { x: 1 }, user("c")]);
  expect(transcript.json({ id: "nobody", json: "{}" })).toBe(transcript.json());
});

test("rows that are no messages are passed over and stay as they are", async () => {
  const probe = await probeHost();
  const bad = [
    "not json",
    "",
    "null",
    "[]",
    '"x"',
    '{"role":"user","parts":[]}',
    '{"id":"","role":"user","parts":[]}',
    '{"id":7,"role":"user","parts":[]}',
    '{"id":"x","role":"robot","parts":[]}',
    '{"id":"x","role":"user"}',
    '{"id":"x","role":"user","parts":{}}',
    '{"id":"x","role":"user","parts":[null]}',
    '{"id":"x","role":"user","parts":[{}]}',
  ];
  bad.forEach((body, at) => insertRow(probe, `bad-${at}`, body));
  insertRow(probe, "empty", '{"id":"empty","role":"user","parts":[],"metadata":{"a":1},"extra":true}');
  const transcript = new Transcript(probe.host, "main");
  transcript.put(user("good"));
  expect(ids(transcript)).toEqual(["empty", "good"]);
  expect(transcript.get("empty")).toMatchObject({ metadata: { a: 1 }, extra: true, parts: [] });
  expect(JSON.parse(transcript.json())).toHaveLength(2);
  transcript.trim();
  const [row] = probe.host.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_message");
  expect(row?.n).toBe(bad.length + 2);
});

test("a row that holds a message of another id is passed over", async () => {
  const probe = await probeHost();
  insertRow(probe, "same", JSON.stringify(user("same", "first")));
  insertRow(probe, "other", JSON.stringify(user("same", "second")));
  expect(new Transcript(probe.host, "main").list()).toEqual([user("same", "first")]);
});

test("what did not change is not written again", async () => {
  const probe = await probeHost();
  const transcript = new Transcript(probe.host, "main");
  transcript.put(assistant("a"));
  const before = probe.commits();
  transcript.put(assistant("a"));
  transcript.put({ ...assistant("a") });
  expect(probe.commits()).toBe(before);
  transcript.put(assistant("a", { type: "text", text: "more" }));
  expect(probe.commits()).toBe(before + 1);
});

test("a transaction that is undone leaves the memory as the rows are", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  transcript.put(user("a"));
  const undone = () =>
    host.tx(() => {
      transcript.put(user("b"));
      transcript.put(user("a", "edited"));
      transcript.remove("a");
      throw new Error("no");
    });
  expect(undone).toThrow("no");
  transcript.reload();
  expect(transcript.list()).toEqual([user("a")]);
});

test.each([
  [2, ["d", "e"]],
  [1, ["e"]],
  [0, ["e"]],
  [-3, ["e"]],
  [5, ["a", "b", "c", "d", "e"]],
  [undefined, ["a", "b", "c", "d", "e"]],
  [Number.POSITIVE_INFINITY, ["a", "b", "c", "d", "e"]],
  [Number.NaN, ["a", "b", "c", "d", "e"]],
])("at most %s messages: the oldest go first, the newest never", async (max, left) => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main", { maxMessages: () => max });
  for (const id of ["a", "b", "c", "d", "e"]) transcript.put(user(id));
  transcript.trim();
  expect(ids(transcript)).toEqual(left);
  expect(ids(new Transcript(host, "main"))).toEqual(left);
});

test("the app's own cleaning comes after ours, and before the size is looked at", async () => {
  const { host } = await probeHost();
  const seen: UIMessage[] = [];
  const transcript = new Transcript(host, "main", {
    sanitize(message) {
      seen.push(message);
      return { ...message, parts: message.parts.filter((part) => part.type !== "file") };
    },
  });
  const picture: UIMessage["parts"][number] = {
    type: "file",
    mediaType: "image/png",
    url: `data:,${"x".repeat(3_000_000)}`,
  };
  const stored = transcript.put(
    assistant(
      "a",
      { type: "text", text: "hi", providerMetadata: { openai: { itemId: "x" }, other: { kept: 1 } } },
      picture,
    ),
  );
  expect(seen[0]?.parts[0]).toMatchObject({ providerMetadata: { other: { kept: 1 } } });
  expect(seen[0]?.parts[0]).not.toHaveProperty("providerMetadata.openai");
  expect(stored.parts).toHaveLength(1);
  expect(stored.metadata).toBeUndefined();
  expect(new Transcript(host, "main").get("a")).toEqual(stored);
});

test("what the app's cleaning throws fails the write and changes nothing", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main", {
    sanitize: () => {
      throw new Error("not this one");
    },
  });
  expect(() => transcript.put(user("a"))).toThrow("not this one");
  expect(transcript.isEmpty).toBe(true);
});

test("a message too large for a row: tool outputs are cut, largest first, and the metadata says which", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  const small = { rows: 3 };
  const message = assistant(
    "a",
    { type: "text", text: "Read them all." },
    call("small", small),
    call("huge", "é".repeat(1_500_000)),
    call("large", "y".repeat(1_000_000)),
  );
  const stored = transcript.put({ ...message, metadata: { model: "m" } });
  expect(stored.metadata).toEqual({ model: "m", compactedToolOutputs: ["huge"] });
  expect(stored.parts[1]).toEqual(call("small", small));
  expect(stored.parts[3]).toEqual(call("large", "y".repeat(1_000_000)));
  const [row] = host.sql<{ size: number }>("SELECT length(CAST(body AS BLOB)) AS size FROM perdure_message");
  expect(row?.size).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
  expect(new Transcript(host, "main").get("a")).toEqual(stored);
});

test("the message with a call is found by the call's id, the newest first", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  transcript.put(assistant("a", call("c1", 1)));
  transcript.put(user("u", "c1"));
  transcript.put(assistant("b", { type: "text", text: '"c1"' }));
  expect(transcript.withCall("c1")?.id).toBe("a");
  transcript.put(assistant("c", call("c1", 2)));
  expect(transcript.withCall("c1")?.id).toBe("c");
  expect(transcript.withCall('we"ird')).toBeUndefined();
  transcript.put(assistant("d", call('we"ird', 1)));
  expect(transcript.withCall('we"ird')?.id).toBe("d");
});

test("clear and remove", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  for (const id of ["a", "b"]) transcript.put(user(id));
  transcript.remove("a");
  transcript.remove("nobody");
  expect(ids(transcript)).toEqual(["b"]);
  transcript.clear();
  expect(transcript.isEmpty).toBe(true);
  expect(transcript.last()).toBeUndefined();
  expect(transcript.json()).toBe("[]");
  expect(new Transcript(host, "main").isEmpty).toBe(true);
});

test("messages that waited become one, in the order in which they were sent", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  for (const id of ["u1", "u2", "u3"]) transcript.put(user(id));
  const waiting = [turnRow({ messageIds: '["u1"]' }), turnRow({ messageIds: '["u1","u2","gone"]' })];
  mergeWaiting(transcript, waiting, [user("u3")], []);
  expect(transcript.list()).toEqual([
    { id: "u3", role: "user", parts: ["u1", "u2", "u3"].map((text) => ({ type: "text", text })) },
  ]);
  mergeWaiting(transcript, waiting, [], []);
  expect(ids(transcript)).toEqual(["u3"]);
});

test("what was answered, or is being answered, is not merged", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  for (const message of [user("u1"), assistant("a1"), user("u2"), user("u3"), user("u4")]) transcript.put(message);
  const waiting = [turnRow({ messageIds: '["u1","u2","u3"]' })];
  mergeWaiting(transcript, waiting, [user("u4")], [turnRow({ messageIds: '["u2"]' })]);
  expect(ids(transcript)).toEqual(["u1", "a1", "u2", "u4"]);
  expect(transcript.get("u4")?.parts).toHaveLength(2);
});

test("messages that are moved to the end keep their order, also after a restart", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  for (const id of ["a", "b", "c", "d"]) transcript.put(user(id));
  transcript.moveToEnd(new Set(["c", "a", "nobody"]));
  for (const view of [transcript, new Transcript(host, "main")]) {
    expect(ids(view)).toEqual(["b", "d", "a", "c"]);
    expect(view.get("a")).toEqual(user("a"));
  }
});
