import { expect, test } from "vitest";
import { textIn, user } from "../../../test/chat/client.ts";
import { boundary, continueLast, openDesk, save, type TestDesk } from "../../../test/chat/desk.ts";
import { eventually } from "../../../test/host/open-host.ts";
import type { UIMessage } from "../../message/types.ts";
import { readTurn } from "../../store/turn.ts";
import { listInbox, withdrawInbox } from "./inbox.ts";
import { waitingSteers } from "./steer.ts";
import { submit } from "./submit.ts";

/** A client sends what it has, the last of it new, or asks for another answer. */
function ask({ chat }: TestDesk, id: string, messages: UIMessage[], trigger: "submit" | "regenerate" = "submit"): void {
  expect(submit(chat, { id, messages, trigger, body: undefined, clientTools: undefined }, undefined)).toBeUndefined();
}

const status = ({ host }: TestDesk, id: string) => readTurn(host, id)?.status;
const texts = ({ chat }: TestDesk) => chat.transcripts.of("main").list().map(textIn);

test("a message whose turn was stopped is part of what the next one reads, whoever names it later", async () => {
  const desk = await openDesk({ messageConcurrency: "steer" });
  const { chat } = desk;
  desk.send("u1");
  await desk.stage();
  chat.cancel("r-u1");
  await eventually(() => status(desk, "r-u1") === "aborted", "the end of the first");
  const turn = save(chat, [user("u2")]);
  const stage = await desk.stage();
  expect(stage.messages.map(textIn)).toEqual(["u1", "u2"]);
  ask(desk, "r3", [user("u1"), user("u2"), user("u3")]);
  expect(chat.turns.flatMap((one) => waitingSteers(chat, one)).map(({ message }) => message.id)).toEqual(["u3"]);
  expect(chat.messages.map(textIn)).toEqual(["u1", "u2"]);
  expect(boundary(chat)).toEqual(["u3"]);
  stage.say("two").end();
  expect(await chat.settled(turn)).toMatchObject({ status: "completed" });
  expect(texts(desk)).toEqual(["u1", "u2", "u3", "two"]);
});

test("who withdraws a message does not take back an earlier one that its request names", async () => {
  const desk = await openDesk({ messageConcurrency: { strategy: "debounce", debounceMs: 1_000 } });
  desk.send("u1");
  (await desk.stage()).fail(new Error("no answer"));
  await eventually(() => status(desk, "r-u1") === "error", "the end of the first");
  save(desk.chat, [user("u2")]);
  const stage = await desk.stage();
  ask(desk, "r3", [user("u1"), user("u2"), user("u3")]);
  expect(withdrawInbox(desk.chat, "r3")).toMatchObject({ kind: "withdrawn", messages: [user("u3")] });
  expect(texts(desk)).toEqual(["u1", "u2"]);
  stage.end();
});

test("an edit of a message that waits takes the place of its turn", async () => {
  const desk = await openDesk();
  desk.send("u1");
  const first = await desk.stage();
  ask(desk, "r2", [user("u1"), user("u2")]);
  ask(desk, "edit", [user("u1"), user("u2", "better")]);
  expect([status(desk, "r2"), desk.told.at(-2), desk.told.at(-1)]).toEqual(["skipped", "skipped r2", "accepted"]);
  expect(listInbox(desk.chat)).toMatchObject([{ requestId: "edit", messages: [user("u2", "better")] }]);
  first.say("one").end();
  const second = await desk.stage();
  expect(second.messages.map(textIn)).toEqual(["u1", "one", "better"]);
  second.say("two").end();
  await desk.chat.idle();
  expect([texts(desk), desk.calls]).toEqual([["u1", "one", "better", "two"], 2]);
});

test("whoever cuts the conversation before a question stops the turn that answers it", async () => {
  const desk = await openDesk();
  desk.send("u1");
  (await desk.stage()).say("one").end();
  await desk.chat.idle();
  desk.send("u2");
  const second = (await desk.stage()).say("half");
  await eventually(() => texts(desk).length === 4, "an answer");
  ask(desk, "edit", [user("u1", "better")]);
  await second.aborted;
  const third = await desk.stage();
  expect(third.messages.map(textIn)).toEqual(["better"]);
  expect(status(desk, "r-u2")).toBe("aborted");
  third.say("new").end();
  await desk.chat.idle();
  expect(texts(desk)).toEqual(["better", "new"]);
});

test("another answer, when the first had taken a message in: that one is read again", async () => {
  const desk = await openDesk({ messageConcurrency: "steer" });
  desk.send("u1");
  const first = (await desk.stage()).say("one");
  await eventually(() => texts(desk).length === 2, "an answer");
  ask(desk, "again", [user("u1")], "regenerate");
  desk.send("u2");
  expect(boundary(desk.chat)).toEqual(["u2"]);
  first.end();
  const second = await desk.stage();
  expect(second.messages.map(textIn)).toEqual(["u1", "u2"]);
  second.say("both").end();
  await desk.chat.idle();
  expect(texts(desk)).toEqual(["u1", "u2", "both"]);
});

test("merge leaves alone what another turn is to answer", async () => {
  const desk = await openDesk({ messageConcurrency: "merge" });
  desk.send("u1");
  const first = await desk.stage();
  save(desk.chat, [user("u2")]);
  ask(desk, "r3", [user("u1"), user("u2"), user("u3")]);
  ask(desk, "r4", [user("u1"), user("u2"), user("u3"), user("u4")]);
  expect(desk.ids()).toEqual(["u1", "u2", "u4"]);
  first.end();
  const second = await desk.stage();
  expect(second.messages.at(-1)).toEqual(user("u2"));
  second.end();
  (await desk.stage()).end();
  await desk.chat.idle();
});

test("what was withdrawn does not come back with a client that still shows it", async () => {
  const desk = await openDesk();
  desk.send("u1");
  const first = await desk.stage();
  desk.send("u2");
  withdrawInbox(desk.chat, "r-u2");
  ask(desk, "r3", [user("u1"), user("u2"), user("u3")]);
  expect(desk.ids()).toEqual(["u1", "u3"]);
  // Unless it is sent again.
  ask(desk, "r4", [user("u1"), user("u3"), user("u2")]);
  expect(desk.ids()).toEqual(["u1", "u3", "u2"]);
  first.end();
});

test("a wish to go on waits for its place, and is passed over when the answer is not the last word by then", async () => {
  const desk = await openDesk();
  const { chat } = desk;
  desk.send("u1");
  (await desk.stage()).say("one").end();
  await chat.idle();
  const first = continueLast(chat) ?? "";
  const going = await desk.stage();
  desk.send("u2");
  going.say(" more").end();
  // What waits for its own turn is no reason.
  expect(await chat.settled(first)).toMatchObject({ status: "completed" });
  (await desk.stage()).say("half");
  await eventually(() => texts(desk).length === 4, "an answer");
  ask(desk, "again", [user("u1"), user("u2")], "regenerate");
  const second = continueLast(chat) ?? "";
  chat.cancel("r-u2");
  await desk.stage();
  chat.cancel("again");
  expect(await chat.settled(second)).toMatchObject({ status: "skipped" });
  expect(desk.ids()).toHaveLength(3);
});
