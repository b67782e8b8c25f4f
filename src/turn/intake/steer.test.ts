import { convertToModelMessages } from "ai";
import { expect, test } from "vitest";
import { textIn, user } from "../../../test/chat/client.ts";
import { boundary, openDesk, save, type TestDesk } from "../../../test/chat/desk.ts";
import type { Stage } from "../../../test/chat/stage.ts";
import { eventually } from "../../../test/host/open-host.ts";
import { newestTurn, readTurn } from "../../store/turn.ts";
import { editInbox, listInbox, moveInbox, withdrawInbox } from "./inbox.ts";
import { readReceipt, takeSteers, waitingSteers } from "./steer.ts";
import { isSteered, withoutSteered } from "../../message/steered.ts";
import { submit } from "./submit.ts";

/** A turn that has said something, with the policy `steer`. */
async function talking(): Promise<{ desk: TestDesk; stage: Stage; answer: string }> {
  const desk = await openDesk({ messageConcurrency: "steer" });
  desk.send("u1");
  const stage = (await desk.stage()).say("one");
  const answer = await eventually(() => desk.ids().find((id) => id !== "u1"), "an answer");
  return { desk, stage, answer };
}

const status = ({ host }: TestDesk, id: string) => readTurn(host, id)?.status;
const waiting = ({ chat }: TestDesk) =>
  chat.turns.flatMap((turn) => waitingSteers(chat, turn)).map(({ message }) => message.id);

test("what is sent while a turn runs waits, and the turn takes it before its next step", async () => {
  const { desk, stage, answer } = await talking();
  const { chat } = desk;
  expect(waiting(desk)).toEqual([]);
  desk.send("u2");
  desk.send("u3");
  expect(waiting(desk)).toEqual(["u2", "u3"]);
  expect(listInbox(chat).map(({ requestId, steer }) => [requestId, steer])).toEqual([
    ["r-u2", true],
    ["r-u3", true],
  ]);
  const settled = chat.settled("r-u2");
  desk.told.length = 0;
  expect(boundary(chat, 4)).toEqual(["u2", "u3"]);
  expect(await settled).toEqual({ status: "completed" });
  expect(desk.told).toEqual(["updated u2", "ended r-u2 completed", "updated u3", "ended r-u3 completed"]);
  expect([status(desk, "r-u2"), status(desk, "r-u3"), waiting(desk), listInbox(chat)]).toEqual([
    "completed",
    "completed",
    [],
    [],
  ]);
  for (const id of ["r-u2", "r-u3"])
    expect(readReceipt(chat, id)).toEqual({ turnId: "r-u1", step: 4, callId: "call-4" });
  // In front of the answer, so that the answer can be gone on with.
  expect(desk.ids()).toEqual(["u1", "u2", "u3", answer]);
  stage.say(" more").end();
  await chat.idle();
  expect(desk.calls).toBe(1);
  expect(
    chat.transcripts
      .of("main")
      .get(answer)
      ?.parts.map(({ type }) => type),
  ).toContain("steering-message");
  expect(await chat.settled("r-u1")).toEqual({ status: "completed", error: undefined });
});

test("the message keeps its metadata and says into which answer it went", async () => {
  const { desk, stage, answer } = await talking();
  const request = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  const message = { ...user("u2"), metadata: { mood: "calm", perdure: { steeredInto: "forged" } } };
  submit(desk.chat, { id: "r2", messages: [message], ...request }, undefined);
  const stored = desk.chat.transcripts.of("main").get("u2");
  expect([stored?.metadata, stored !== undefined && isSteered(stored)]).toEqual([{ mood: "calm" }, false]);
  boundary(desk.chat);
  expect(desk.chat.transcripts.of("main").get("u2")?.metadata).toEqual({
    mood: "calm",
    perdure: { steeredInto: answer },
  });
  stage.end();
});

test("the model of the next turn reads it once, inside of the answer", async () => {
  const { desk, stage } = await talking();
  desk.send("u2", "in Texas");
  boundary(desk.chat);
  stage.end();
  await desk.chat.idle();
  desk.send("u4");
  const next = await desk.stage();
  const model = await convertToModelMessages(withoutSteered(next.messages));
  expect(JSON.stringify(model).split("in Texas")).toHaveLength(2);
  expect(model.map(({ role }) => role)).toEqual(["user", "assistant", "user", "user"]);
  next.end();
});

test("what waits behind stays behind: turns of others keep their place, and are not taken", async () => {
  const { desk, stage, answer } = await talking();
  const cron = save(desk.chat, [user("s1")]);
  desk.send("u2");
  expect(waiting(desk)).toEqual(["u2"]);
  expect(boundary(desk.chat)).toEqual(["u2"]);
  expect(desk.ids()).toEqual(["u1", "u2", answer, "s1"]);
  stage.end();
  const second = await desk.stage();
  expect(second.options.requestId).toBe(cron);
  expect(second.messages.at(-1)?.id).toBe("s1");
  second.end();
});

test("taken before the answer has begun: it still ends up in front of it", async () => {
  const desk = await openDesk({ messageConcurrency: "steer" });
  desk.send("u1");
  const stage = await desk.stage();
  desk.send("u2");
  boundary(desk.chat, 0);
  stage.say("both").end();
  await desk.chat.idle();
  expect(desk.ids().slice(0, 2)).toEqual(["u1", "u2"]);
  expect(textIn(desk.chat.transcripts.of("main").last())).toBe("both");
  expect(desk.calls).toBe(1);
});

test("a request that repeats what others wait for is taken with its own message only", async () => {
  const { desk, stage } = await talking();
  const request = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  submit(desk.chat, { id: "r2", messages: [user("u1"), user("u2")], ...request }, undefined);
  boundary(desk.chat, 1);
  submit(desk.chat, { id: "r3", messages: [user("u1"), user("u2"), user("u3"), user("u4")], ...request }, undefined);
  expect(waiting(desk)).toEqual(["u3", "u4"]);
  desk.told.length = 0;
  expect(boundary(desk.chat, 2)).toEqual(["u3", "u4"]);
  expect(desk.told).toEqual(["updated u3", "updated u4", "ended r3 completed"]);
  expect(readReceipt(desk.chat, "r3")?.step).toBe(2);
  stage.end();
});

test("not taken before the turn ends: it is the next turn, without a receipt, and may take others in turn", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  stage.end();
  const second = await desk.stage();
  expect(second.options.requestId).toBe("r-u2");
  expect(second.messages.at(-1)?.id).toBe("u2");
  expect(readReceipt(desk.chat, "r-u2")).toBeUndefined();
  desk.send("u3");
  expect(boundary(desk.chat)).toEqual(["u3"]);
  second.say("two").end();
  await desk.chat.idle();
  expect(readReceipt(desk.chat, "r-u3")?.turnId).toBe("r-u2");
});

test("with nothing running a message is not marked, and there is nothing to take", async () => {
  const desk = await openDesk({ messageConcurrency: "steer" });
  expect(waiting(desk)).toEqual([]);
  expect(readReceipt(desk.chat, "nobody")).toBeUndefined();
  desk.send("u1");
  expect(readTurn(desk.host, "r-u1")?.steer).toBe(0);
  (await desk.stage()).end();
});

test("an edit, a regenerate and what has no text or file have turns of their own", async () => {
  const { desk, stage } = await talking();
  const base = { body: undefined, clientTools: undefined };
  const { chat } = desk;
  submit(chat, { id: "edit", messages: [user("u1", "other")], trigger: "submit", ...base }, undefined);
  submit(chat, { id: "again", messages: [user("u1")], trigger: "regenerate", ...base }, undefined);
  const data = { id: "u5", role: "user", parts: [{ type: "data-place", data: 1 }] };
  submit(chat, { id: "data", messages: [data], trigger: "submit", ...base }, undefined);
  expect(waiting(desk)).toEqual([]);
  expect(boundary(chat)).toEqual([]);
  chat.cancelAll();
  stage.end();
  await chat.idle();
});

test("files go along", async () => {
  const { desk, stage } = await talking();
  const request = { trigger: "submit", body: undefined, clientTools: undefined } as const;
  const file = { type: "file" as const, mediaType: "image/png", url: "data:image/png;base64,AA==" };
  const message = { ...user("u2"), parts: [{ type: "text" as const, text: "see" }, { type: "data-x", data: 1 }, file] };
  submit(desk.chat, { id: "r2", messages: [message], ...request }, undefined);
  const active = desk.chat.running;
  if (active === undefined) throw new Error("Nothing runs.");
  const receipt = { turnId: "r-u1", step: 1, callId: "c" };
  const chunks = desk.chat.commit(() => takeSteers(desk.chat, active, receipt));
  expect(chunks).toEqual([{ type: "steering-message", id: "u2", parts: [{ type: "text", text: "see" }, file] }]);
  stage.end();
});

test("a transaction that is undone takes nothing", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  const before = desk.ids();
  const active = desk.chat.running;
  if (active === undefined) throw new Error("Nothing runs.");
  const take = () => {
    takeSteers(desk.chat, active, { turnId: "r-u1", step: 1, callId: "c" });
    throw new Error("no budget");
  };
  expect(() => desk.chat.commit(take)).toThrow("no budget");
  expect([status(desk, "r-u2"), desk.ids(), waiting(desk)]).toEqual(["accepted", before, ["u2"]]);
  expect(readReceipt(desk.chat, "r-u2")).toBeUndefined();
  expect(boundary(desk.chat)).toEqual(["u2"]);
  stage.end();
});

test("a crash after it was taken: it is in the answer, and its turn does not come again", async () => {
  const { desk, answer } = await talking();
  desk.send("u2");
  boundary(desk.chat, 1);
  desk.restart();
  const again = await desk.stage();
  expect(desk.chat.running?.message.parts.filter(({ type }) => type === "steering-message")).toHaveLength(1);
  expect(readReceipt(desk.chat, "r-u2")).toEqual({ turnId: "r-u1", step: 1, callId: "call-1" });
  again.say(" and on").end();
  await desk.chat.idle();
  expect([desk.calls, desk.ids()]).toEqual([2, ["u1", "u2", answer]]);
});

test("a crash before it was taken: the turn that is carried on takes it", async () => {
  const { desk, answer } = await talking();
  desk.send("u2");
  desk.restart();
  const again = await desk.stage();
  expect(boundary(desk.chat, 2)).toEqual(["u2"]);
  again.say(" and on").end();
  await desk.chat.idle();
  expect([desk.calls, desk.ids()]).toEqual([2, ["u1", "u2", answer]]);
});

test("a turn that fails after it took something is still the newest, for whoever asks what went wrong", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  boundary(desk.chat);
  stage.push({ type: "error", errorText: "no model" });
  await desk.chat.idle();
  expect(newestTurn(desk.host, "main")).toMatchObject({ id: "r-u1", status: "error" });
});

// Both orders of each race with the step boundary.

test("withdrawn, then the boundary: it is not taken. The boundary, then withdrawn: it has started", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  expect(withdrawInbox(desk.chat, "r-u2").kind).toBe("withdrawn");
  expect(boundary(desk.chat, 1)).toEqual([]);
  desk.send("u3");
  expect(boundary(desk.chat, 2)).toEqual(["u3"]);
  expect(withdrawInbox(desk.chat, "r-u3")).toEqual({ kind: "started" });
  expect(desk.ids()).toContain("u3");
  stage.end();
});

test("edited, then the boundary: the edit is taken. The boundary, then edited: it has started", async () => {
  const { desk, stage, answer } = await talking();
  desk.send("u2");
  expect(editInbox(desk.chat, "r-u2", "changed")).toBe("edited");
  boundary(desk.chat, 1);
  expect(editInbox(desk.chat, "r-u2", "too late")).toBe("started");
  stage.end();
  await desk.chat.idle();
  const part = desk.chat.transcripts
    .of("main")
    .get(answer)
    ?.parts.find(({ type }) => type === "steering-message");
  expect(part).toMatchObject({ id: "u2", parts: [{ type: "text", text: "changed" }] });
});

test("stopped, then the boundary: it is not taken. The boundary, then stopped: there is nothing to stop", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  expect(desk.chat.cancel("r-u2")).toBe(true);
  expect(boundary(desk.chat, 1)).toEqual([]);
  expect(status(desk, "r-u2")).toBe("aborted");
  desk.send("u3");
  boundary(desk.chat, 2);
  expect(desk.chat.cancel("r-u3")).toBe(false);
  stage.end();
});

test("moved, then the boundary: taken in the new order", async () => {
  const { desk, stage } = await talking();
  desk.send("u2");
  desk.send("u3");
  moveInbox(desk.chat, "r-u3", "r-u2");
  expect(boundary(desk.chat)).toEqual(["u3", "u2"]);
  stage.end();
});
