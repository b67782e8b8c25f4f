import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { assistant, say, user } from "../../test/support/tree-messages.ts";
import { dataUrlOf, toReference } from "../message/media-ref.ts";
import type { Part, UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import { deleteMessage, readMessage, updateMessage } from "../store/message.ts";
import { Files, filesOf } from "./files.ts";
import { MediaRestore } from "./media-restore.ts";
import { MediaMover, type MediaRetention } from "./media.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const bytesOf = (n: number) => new Uint8Array(40_000).fill(n);
const picture = (n: number) => dataUrlOf(bytesOf(n), "image/png");
const withPicture = (id: string, n: number): UIMessage => ({
  ...{ id, role: "user" },
  parts: [
    { type: "text", text: id },
    { type: "file", mediaType: "image/png", filename: `${id}.png`, url: picture(n) },
  ],
});
const withOutput = (id: string, output: unknown): UIMessage =>
  assistant(id, { type: "tool-x", toolCallId: id, state: "output-available", input: {}, output } as Part);

function stored(host: AgentHost, id: string): UIMessage {
  return JSON.parse(readMessage(host, id)?.body ?? "null") as UIMessage;
}

const fileUrl = (message: UIMessage) => message.parts.find((part) => part.type === "file")?.url ?? "";

async function setUp(retention: MediaRetention | false = { keepInMessages: 2 }) {
  const probe = await probeHost();
  const { host } = probe;
  const failures: unknown[] = [];
  let changes = 0;
  const make = () =>
    new MediaMover({
      host,
      retention: () => retention,
      changed: () => changes++,
      failed: (error) => failures.push(error),
    });
  return { ...probe, mover: make(), make, failures, changes: () => changes };
}

test("what is large in older messages is moved, and the newest keep theirs", async () => {
  const { host, mover, changes, failures } = await setUp();
  for (let n = 1; n <= 4; n++) say(host, "main", withPicture(`p${n}`, n));
  mover.after("main");
  await mover.idle();
  expect(failures).toEqual([]);
  expect(changes()).toBe(1);
  for (const n of [1, 2]) {
    const url = fileUrl(stored(host, `p${n}`));
    expect(url).toMatch(/^\/agents\/probe\/one\/files\/[0-9a-f]{64}$/);
    const file = await filesOf(host).read(toReference(url)?.name ?? "");
    expect(file).toMatchObject({ mediaType: "image/png", size: 40_000, pending: false });
    expect(file && new Uint8Array(file.bytes)).toEqual(bytesOf(n));
  }
  for (const n of [3, 4]) expect(stored(host, `p${n}`)).toEqual(withPicture(`p${n}`, n));
});

test("a model reads the same as before", async () => {
  const { host, mover } = await setUp();
  const long = "many words ".repeat(5_000);
  const messages = [withPicture("p", 1), withOutput("o", { log: long, shot: picture(2), small: "x" })];
  for (const message of messages) say(host, "main", message);
  for (const id of ["a", "b"]) say(host, "main", user(id, id));
  await mover.pass("main");
  const moved = messages.map(({ id }) => stored(host, id));
  expect(moved).not.toEqual(messages);
  expect(JSON.stringify(moved).length).toBeLessThan(6_000);
  const restore = new MediaRestore(() => filesOf(host));
  const back = await restore.of(moved);
  expect(back).toEqual(messages);
  expect((await restore.of(moved))[0]).toBe(back[0]);
  const plain = [user("x", "y")];
  expect(await restore.of(plain)).toBe(plain);
});

test("a file that is gone becomes a text for the model", async () => {
  const { host, mover } = await setUp();
  say(host, "main", withPicture("p", 1));
  for (const id of ["a", "b"]) say(host, "main", user(id, id));
  await mover.pass("main");
  const name = toReference(fileUrl(stored(host, "p")))?.name ?? "";
  await host.blobs.delete(name);
  const [back] = await new MediaRestore(() => filesOf(host)).of([stored(host, "p")]);
  expect(back?.parts).toEqual([
    { type: "text", text: "p" },
    { type: "text", text: "[The file p.png is no longer stored.]" },
  ]);
});

test("each turn costs what is new: what was looked at is not looked at again, also in another life", async () => {
  const { host, mover, make, commits } = await setUp();
  for (let n = 1; n <= 3; n++) say(host, "main", withPicture(`p${n}`, n));
  await mover.pass("main");
  const before = commits();
  await mover.pass("main");
  await make().pass("main");
  expect(commits()).toBe(before);
  say(host, "main", user("next", "next"));
  await make().pass("main");
  expect(fileUrl(stored(host, "p2"))).toContain("/files/");
  expect(fileUrl(stored(host, "p3"))).toBe(picture(3));
});

test("without anything large nothing is written", async () => {
  const { host, mover, commits } = await setUp();
  for (let n = 0; n < 20; n++) say(host, "main", user(`m${n}`, "short"));
  const before = commits();
  mover.after("main");
  await mover.idle();
  expect(commits()).toBe(before);
});

test("at most 64 rows at a time, and then the rest", async () => {
  const { host, mover } = await setUp();
  for (let n = 0; n < 70; n++) say(host, "main", withOutput(`o${n}`, `${n} ${"x ".repeat(20_000)}`));
  const moved = () =>
    Array.from({ length: 70 }, (_, n) => `o${n}`).filter((id) => JSON.stringify(stored(host, id)).length < 9_000);
  expect(await mover.pass("main")).toBe(true);
  expect(moved()).toHaveLength(64);
  expect(await mover.pass("main")).toBe(false);
  expect(moved()).toHaveLength(68);
});

test("a message that changes while its bytes are stored is left alone", async () => {
  const { host, mover } = await setUp();
  const seq = say(host, "main", withPicture("p", 1));
  for (const id of ["a", "b"]) say(host, "main", user(id, id));
  const passing = mover.pass("main");
  updateMessage(host, seq, "user", JSON.stringify(user("p", "changed")));
  await passing;
  expect(stored(host, "p")).toEqual(user("p", "changed"));
});

test("bytes that no message came to refer to are deleted later, others are not", async () => {
  const { host, clock } = await setUp();
  const files = filesOf(host);
  const lost = await files.put(bytesOf(1), "image/png", true);
  const used = await files.put(bytesOf(2), "image/png", true);
  const kept = await files.put(bytesOf(3), "text/plain");
  files.refer(used.name, 1);
  expect(await files.collect()).toBe(0);
  await clock.advance(60 * 60 * 1000);
  expect(await files.collect()).toBe(1);
  expect(await host.blobs.get(lost.name)).toBeUndefined();
  for (const { name } of [used, kept]) expect(await files.read(name)).toBeDefined();
});

test("files of messages that were deleted go too, unless another message refers to them", async () => {
  const { host, mover, make } = await setUp();
  const both = say(host, "main", withPicture("p1", 1));
  const only = say(host, "main", withPicture("p2", 2));
  for (const id of ["a", "b"]) say(host, "main", user(id, id));
  await mover.pass("main");
  const [shared, lone] = ["p1", "p2"].map((id) => toReference(fileUrl(stored(host, id)))?.name ?? "");
  // As an edit leaves it.
  say(host, "main", { ...stored(host, "p1"), id: "edited" });
  deleteMessage(host, both, null);
  deleteMessage(host, only, null);
  expect(await make().collect()).toBe(1);
  expect(await filesOf(host).read(shared ?? "")).toBeDefined();
  expect(await host.blobs.get(lone ?? "")).toBeUndefined();
});

test("after its days a file is deleted and the message says so", async () => {
  const { host, clock, mover, changes } = await setUp({ keepInMessages: 2, days: 3 });
  const long = "many words ".repeat(5_000);
  say(host, "main", withPicture("p", 1));
  say(host, "main", withOutput("o", { log: long, shot: picture(2) }));
  for (const id of ["a", "b"]) say(host, "main", user(id, id));
  mover.after("main");
  await mover.idle();
  const name = toReference(fileUrl(stored(host, "p")))?.name ?? "";
  await clock.advance(3 * DAY_MS - 1);
  expect(await mover.expire()).toBe(0);
  await clock.advance(1);
  expect(await mover.expire()).toBe(3);
  expect(changes()).toBe(2);
  expect(stored(host, "p").parts).toEqual([
    { type: "text", text: "p" },
    { type: "text", text: "[The file p.png was deleted after 3 days.]" },
  ]);
  const output = JSON.stringify(stored(host, "o"));
  expect(output).toContain("[A file of type image/png was deleted after 3 days.]");
  expect(output).toContain(`${long.length} characters in all; the rest was deleted after 3 days]`);
  expect(output).not.toContain("/files/");
  expect(await host.blobs.get(name)).toBeUndefined();
  expect(filesOf(host).info(name)).toMatchObject({ expired: true });
  expect(await mover.expire()).toBe(0);
});

test("the same bytes that come again after they expired are stored again", async () => {
  const { host } = await setUp();
  const files = filesOf(host);
  const { name } = await files.put(bytesOf(1), "image/png");
  await files.expire(name);
  expect(await files.read(name)).toBeUndefined();
  await files.put(bytesOf(1), "image/png");
  expect(await files.read(name)).toMatchObject({ expired: false });
});

test("when nothing is to be moved, nothing is", async () => {
  const { host, mover } = await setUp(false);
  for (let n = 1; n <= 4; n++) say(host, "main", withPicture(`p${n}`, n));
  mover.after("main");
  await mover.idle();
  expect(await mover.pass("main")).toBe(false);
  expect(stored(host, "p1")).toEqual(withPicture("p1", 1));
});

test("a setting that cannot work is reported", async () => {
  const { host, mover, failures } = await setUp({ keepInMessages: 0 });
  say(host, "main", user("a", "a"));
  mover.after("main");
  await mover.idle();
  expect(failures).toMatchObject([{ code: "bad_config" }]);
});

test("files of names that are none are not looked for", async () => {
  const { host } = await setUp();
  const files = new Files(host);
  for (const name of ["", "../secret", "x".repeat(64), "A".repeat(64)]) expect(await files.read(name)).toBeUndefined();
});
