import { expect, test } from "vitest";
import { textIn, user } from "../../../test/chat/client.ts";
import { continueLast, openDesk, save, type TestDesk } from "../../../test/chat/desk.ts";
import { PerdureError } from "../../base/error.ts";
import type { UIMessage } from "../../message/types.ts";
import { openTurns, readTurn } from "../../store/turn.ts";
import { editInbox, listInbox, moveInbox, withdrawInbox } from "./inbox.ts";
import { submitMessages } from "./submissions.ts";
import { submit } from "./submit.ts";
import { answerTool } from "./tool-answers.ts";

/** A turn that runs, and these messages behind it. */
async function busy(...behind: string[]) {
  const desk = await openDesk();
  desk.send("u1");
  const stage = await desk.stage();
  for (const id of behind) desk.send(id);
  return { desk, stage, chat: desk.chat };
}

const order = ({ chat }: TestDesk) => listInbox(chat).map(({ requestId }) => requestId);
const code = (work: () => unknown) => {
  try {
    work();
  } catch (thrown) {
    return PerdureError.is(thrown) ? thrown.code : thrown;
  }
  return undefined;
};
/** Runs all that waits, and says what each turn was given to read. */
async function reads(desk: TestDesk, turns: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < turns; i++) {
    const stage = await desk.stage();
    seen.push(stage.messages.map(textIn).join(" "));
    stage.say(`a${i}`).end();
  }
  await desk.chat.idle();
  return seen;
}

test("what waits is listed, in its order, without what runs", async () => {
  const { desk, stage, chat } = await busy("u2", "u3");
  const [first, second] = listInbox(chat);
  expect(first).toEqual({
    requestId: "r-u2",
    messageIds: ["u2"],
    messages: [user("u2")],
    trigger: "submit",
    session: "main",
    steer: false,
    createdAt: desk.clock.now(),
    position: 0,
  });
  expect([second?.requestId, second?.position]).toEqual(["r-u3", 1]);
  stage.end();
  await reads(desk, 2);
  expect(listInbox(chat)).toEqual([]);
});

test("each message is in one item, although clients repeat in every request what they wait for", async () => {
  const { stage, chat } = await busy();
  const base = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  submit(chat, { id: "r2", messages: [user("u1"), user("u2")], ...base }, undefined);
  submit(chat, { id: "r3", messages: [user("u1"), user("u2"), user("u3")], ...base }, undefined);
  chat.cancel("r3");
  submit(chat, { id: "r4", messages: ["u1", "u2", "u3", "u4", "u5"].map((id) => user(id)), ...base }, undefined);
  const ids = () => listInbox(chat).map(({ messageIds }) => messageIds);
  // What was stopped stays in the conversation, and belongs to nobody.
  expect(ids()).toEqual([["u2"], ["u4", "u5"]]);
  expect(withdrawInbox(chat, "r4")).toMatchObject({ kind: "withdrawn", messages: [{ id: "u4" }, { id: "u5" }] });
  expect(ids()).toEqual([["u2"]]);
  stage.end();
});

test("latest: what was passed over waits with the newest", async () => {
  const desk = await openDesk({ messageConcurrency: "latest" });
  desk.send("u1");
  const stage = await desk.stage();
  const base = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  submit(desk.chat, { id: "r2", messages: [user("u2")], ...base }, undefined);
  submit(desk.chat, { id: "r3", messages: [user("u2"), user("u3")], ...base }, undefined);
  expect(listInbox(desk.chat).map(({ requestId, messageIds }) => [requestId, messageIds])).toEqual([
    ["r3", ["u2", "u3"]],
  ]);
  stage.end();
});

test("an edit is what the turn answers, and everyone is told", async () => {
  const { desk, stage, chat } = await busy("u2");
  desk.told.length = 0;
  expect(editInbox(chat, "r-u2", "changed")).toBe("edited");
  expect(desk.told).toEqual(["updated u2", "transcript"]);
  expect(listInbox(chat)[0]?.messages).toEqual([user("u2", "changed")]);
  stage.say("one").end();
  expect(await reads(desk, 1)).toEqual(["u1 one changed"]);
});

test("a text takes the place of the texts and leaves the files; parts take the place of all", async () => {
  const { stage, chat } = await busy();
  const file = { type: "file", mediaType: "text/plain", url: "data:text/plain,x" };
  const text = (value: string) => ({ type: "text", text: value });
  const base = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  const send = (id: string, parts: unknown[]) =>
    submit(chat, { id: `r-${id}`, messages: [{ id, role: "user", parts, metadata: { n: 1 } }], ...base }, undefined);
  send("u2", [file, text("a"), text("b")]);
  send("u3", [file]);
  editInbox(chat, "r-u2", "c");
  editInbox(chat, "r-u3", "c");
  expect(chat.transcripts.of("main").get("u2")).toEqual({
    id: "u2",
    role: "user",
    parts: [file, text("c")],
    metadata: { n: 1 },
  });
  expect(chat.transcripts.of("main").get("u3")?.parts).toEqual([file, text("c")]);
  editInbox(chat, "r-u2", [text("d")]);
  expect(chat.transcripts.of("main").get("u2")?.parts).toEqual([text("d")]);
  stage.end();
});

test.each([[[]], [[7]], [[{ type: "tool-x", toolCallId: "c", state: "input-available" }]], [[{ type: "text" }]]])(
  "parts %j are refused, and nothing has changed",
  async (parts) => {
    const { desk, stage, chat } = await busy("u2");
    desk.told.length = 0;
    expect(code(() => editInbox(chat, "r-u2", parts))).toBe("bad_input");
    expect([listInbox(chat)[0]?.messages, desk.told]).toEqual([[user("u2")], []]);
    stage.end();
  },
);

test("moving: to the front, between, to the end; turns run so and read what was before them", async () => {
  const { desk, stage, chat } = await busy("u2", "u3", "u4");
  expect(moveInbox(chat, "r-u4", "r-u2")).toBe("moved");
  expect(order(desk)).toEqual(["r-u4", "r-u2", "r-u3"]);
  expect(moveInbox(chat, "r-u4", "r-u3")).toBe("moved");
  expect(order(desk)).toEqual(["r-u2", "r-u4", "r-u3"]);
  expect(moveInbox(chat, "r-u2", null)).toBe("moved");
  expect(order(desk)).toEqual(["r-u4", "r-u3", "r-u2"]);
  expect(moveInbox(chat, "r-u3", "r-u3")).toBe("moved");
  expect(order(desk)).toEqual(["r-u4", "r-u3", "r-u2"]);
  expect(desk.ids()).toEqual(["u1", "u4", "u3", "u2"]);
  desk.send("u5");
  expect(order(desk)).toEqual(["r-u4", "r-u3", "r-u2", "r-u5"]);
  expect(listInbox(chat).map(({ position }) => position)).toEqual([0, 1, 2, 3]);
  stage.say("one").end();
  expect(await reads(desk, 4)).toEqual([
    "u1 one u4",
    "u1 one u4 a0 u3",
    "u1 one u4 a0 u3 a1 u2",
    "u1 one u4 a0 u3 a1 u2 a2 u5",
  ]);
});

test("a request that repeats others, moved in front of them, answers only its own message", async () => {
  const { desk, stage, chat } = await busy();
  const base = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  submit(chat, { id: "r2", messages: [user("u1"), user("u2")], ...base }, undefined);
  submit(chat, { id: "r3", messages: [user("u1"), user("u2"), user("u3")], ...base }, undefined);
  moveInbox(chat, "r3", "r2");
  stage.say("one").end();
  expect(await reads(desk, 2)).toEqual(["u1 one u3", "u1 one u3 a0 u2"]);
});

test("the order holds after a restart, and a moved turn that is cut is carried on before the others", async () => {
  const { desk } = await busy("u2", "u3");
  moveInbox(desk.chat, "r-u3", "r-u2");
  desk.restart();
  expect(order(desk)).toEqual(["r-u3", "r-u2"]);
  (await desk.stage()).say("one").end();
  (await desk.stage()).say("half");
  desk.restart();
  const again = await desk.stage();
  expect(again.options.requestId).toBe("r-u3");
  expect(order(desk)).toEqual(["r-u2"]);
  again.end();
  const last = await desk.stage();
  expect(last.messages.at(-1)?.id).toBe("u2");
  last.end();
  await desk.chat.idle();
  expect(openTurns(desk.host)).toEqual([]);
});

test("withdrawn: its messages leave the conversation, who waits for it hears that it was skipped", async () => {
  const { desk, stage, chat } = await busy("u2", "u3");
  const settled = chat.settled("r-u2");
  desk.told.length = 0;
  expect(withdrawInbox(chat, "r-u2")).toEqual({ kind: "withdrawn", messages: [user("u2")] });
  expect(await settled).toEqual({ status: "skipped" });
  expect(desk.told).toEqual(["transcript", "ended r-u2 skipped"]);
  expect(desk.ids()).toEqual(["u1", "u3"]);
  stage.say("one").end();
  expect(await reads(desk, 1)).toEqual(["u1 one u3"]);
  expect(withdrawInbox(chat, "r-u2")).toEqual({ kind: "not_found" });
});

test("what held up the others is withdrawn: they go on at once", async () => {
  const desk = await openDesk({ messageConcurrency: { strategy: "debounce", debounceMs: 60_000 } });
  desk.send("u1");
  const stage = await desk.stage();
  desk.send("u2");
  save(desk.chat, [user("s1")]);
  stage.end();
  await desk.chat.settled("r-u1");
  expect(desk.calls).toBe(1);
  withdrawInbox(desk.chat, "r-u2");
  const next = await desk.stage();
  expect(next.messages.at(-1)?.id).toBe("s1");
  next.end();
});

test("turns without a message of their own can be moved and withdrawn, and have nothing to edit", async () => {
  const { desk, stage, chat } = await busy();
  stage.say("one").end();
  await chat.idle();
  desk.send("u2");
  const second = await desk.stage();
  const base = { body: undefined, clientTools: undefined };
  submit(chat, { id: "again", messages: [user("u1"), user("u2")], trigger: "regenerate", ...base }, undefined);
  desk.send("u3");
  expect(listInbox(chat)[0]).toMatchObject({ requestId: "again", trigger: "regenerate", messages: [] });
  expect(code(() => editInbox(chat, "again", "x"))).toBe("bad_state");
  expect(moveInbox(chat, "again", null)).toBe("moved");
  expect(order(desk)).toEqual(["r-u3", "again"]);
  const before = desk.ids();
  expect(withdrawInbox(chat, "again")).toEqual({ kind: "withdrawn", messages: [] });
  expect(desk.ids()).toEqual(before);
  second.end();
  await reads(desk, 1);
});

test("a turn of the server and one that goes on wait here too", async () => {
  const { desk, stage, chat } = await busy();
  stage.say("one").end();
  await chat.idle();
  desk.send("u2");
  const second = await desk.stage();
  const saved = save(chat, [user("s1"), user("s2")]);
  expect(listInbox(chat)).toMatchObject([{ requestId: saved, trigger: "server", messageIds: ["s1", "s2"] }]);
  editInbox(chat, saved, "changed");
  expect([textIn(chat.transcripts.of("main").get("s1")), textIn(chat.transcripts.of("main").get("s2"))]).toEqual([
    "s1",
    "changed",
  ]);
  expect(continueLast(chat)).toBeUndefined();
  second.end();
  await reads(desk, 1);
});

test("a submission can be edited, moved and withdrawn before its messages are in the conversation", async () => {
  const { desk, stage, chat } = await busy("u2");
  const first = submitMessages(chat, [user("s1")]).requestId;
  const second = submitMessages(chat, [user("s2")]).requestId;
  expect(editInbox(chat, first, "changed")).toBe("edited");
  moveInbox(chat, first, "r-u2");
  expect(order(desk)).toEqual([first, "r-u2", second]);
  expect(listInbox(chat)[0]).toMatchObject({ trigger: "submission", messageIds: ["s1"], messages: [{ id: "s1" }] });
  expect(withdrawInbox(chat, second)).toEqual({ kind: "withdrawn", messages: [user("s2")] });
  expect(desk.ids()).toEqual(["u1", "u2"]);
  stage.say("one").end();
  expect(await reads(desk, 2)).toEqual(["u1 one changed", "u1 one changed a0 u2"]);
});

test("what is not there is not found; a continuation that waits for answers is no input", async () => {
  const { desk, stage, chat } = await busy();
  stage.call("c1").end("tool-calls");
  await chat.idle();
  const answer = { kind: "result", result: { state: "output-available", output: 1 } } as const;
  answerTool(chat, { toolCallId: "c1", answer, autoContinue: true }, undefined);
  const held = openTurns(desk.host)[0];
  expect(held?.status).toBe("held");
  expect(listInbox(chat)).toEqual([]);
  for (const id of ["nobody", "", held?.id ?? ""]) {
    expect(editInbox(chat, id, "x")).toBe("not_found");
    expect(moveInbox(chat, id, null)).toBe("not_found");
    expect(withdrawInbox(chat, id)).toEqual({ kind: "not_found" });
  }
  await desk.clock.advance(100);
  chat.runDue();
  (await desk.stage()).end();
});

// Both orders of each race with the start. What starts a turn is the end of the one before.

const wishes: Record<string, (desk: TestDesk, id: string) => unknown> = {
  edit: ({ chat }, id) => editInbox(chat, id, "changed"),
  move: ({ chat }, id) => moveInbox(chat, id, null),
  "move something in front of it": ({ chat }, id) => moveInbox(chat, "r-u3", id),
  withdraw: ({ chat }, id) => withdrawInbox(chat, id).kind,
};

test.each(Object.keys(wishes))("%s after the start: it has started, and nothing has changed", async (name) => {
  const { desk, stage } = await busy("u2", "u3");
  stage.end();
  const second = await desk.stage();
  expect(second.options.requestId).toBe("r-u2");
  desk.told.length = 0;
  const before = desk.ids();
  expect(wishes[name]?.(desk, "r-u2")).toBe("started");
  expect([desk.told, desk.ids(), order(desk)]).toEqual([[], before, ["r-u3"]]);
  expect(second.messages.map(textIn).join(" ")).toContain("u2");
  second.say("two").end();
  await desk.chat.settled("r-u2");
  expect(wishes[name]?.(desk, "r-u2")).toBe("started");
  await reads(desk, 1);
});

test.each([
  ["edit", "u1 one changed", 2],
  ["move", "u1 one u3", 2],
  ["move something in front of it", "u1 one u3", 2],
  ["withdraw", "u1 one u3", 1],
] as const)("%s in the last moment before the start: the start sees it", async (name, first, turns) => {
  const { desk, stage } = await busy("u2", "u3");
  stage.say("one");
  stage.end();
  wishes[name]?.(desk, "r-u2");
  expect(readTurn(desk.host, "r-u1")?.status).toBe("running");
  const seen = await reads(desk, turns);
  expect(seen[0]).toBe(first);
});

test("stopped, then anything: it is not found. Withdrawn, then stopped: there is nothing to stop", async () => {
  const { desk, stage, chat } = await busy("u2", "u3");
  chat.cancel("r-u2");
  for (const wish of Object.values(wishes)) expect(wish(desk, "r-u2")).toBe("not_found");
  withdrawInbox(chat, "r-u3");
  expect(chat.cancel("r-u3")).toBe(false);
  stage.end();
  await chat.idle();
  expect(desk.calls).toBe(1);
});

test("a store that refuses leaves everything as it was", async () => {
  const { desk, stage, chat } = await busy("u2", "u3");
  const { host } = desk;
  host.sql("CREATE TRIGGER no_turn BEFORE UPDATE ON perdure_turn BEGIN SELECT RAISE(ABORT, 'full'); END");
  host.sql("CREATE TRIGGER no_message BEFORE UPDATE ON perdure_message BEGIN SELECT RAISE(ABORT, 'full'); END");
  desk.told.length = 0;
  for (const wish of Object.values(wishes)) expect(() => wish(desk, "r-u2")).toThrow("full");
  const texts = (list: readonly UIMessage[]) => list.map(textIn);
  expect([desk.ids(), texts(chat.transcripts.of("main").list()), order(desk), desk.told]).toEqual([
    ["u1", "u2", "u3"],
    ["u1", "u2", "u3"],
    ["r-u2", "r-u3"],
    [],
  ]);
  host.sql("DROP TRIGGER no_turn");
  host.sql("DROP TRIGGER no_message");
  stage.end();
  await reads(desk, 2);
});
