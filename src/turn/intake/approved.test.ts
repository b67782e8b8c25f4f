// What somebody has approved runs once, or is told as not run, whatever comes between the yes and the run.
import { expect, test } from "vitest";
import { user } from "../../../test/chat/client.ts";
import { openDesk, type TestDesk } from "../../../test/chat/desk.ts";
import { until } from "../../../test/support/until.ts";
import { PerdureError } from "../../base/error.ts";
import { INTERRUPTED_TEXT } from "../../message/repair.ts";
import { toolParts } from "../../message/types.ts";
import { NOT_BEGUN_TEXT } from "../engine/mend.ts";
import { persist } from "./accept.ts";
import { answerTool } from "./tool-answers.ts";

/** Longer than answers are gathered, and than it takes until a disk that was full is tried again. */
const LATER_MS = 10_000;

async function later({ clock, chat }: TestDesk): Promise<void> {
  await clock.advance(LATER_MS);
  chat.runDue();
}

/** A turn that ended with these questions. */
async function asked(...calls: string[]): Promise<TestDesk> {
  const desk = await openDesk();
  desk.send("u1");
  const stage = await desk.stage();
  for (const call of calls) stage.ask(call, "send", { to: call });
  stage.end("tool-calls");
  await until(() => desk.told.includes("ended r-u1 completed"), "the end of the turn that asks");
  return desk;
}

function approve({ chat }: TestDesk, toolCallId: string): boolean | "held" {
  return answerTool(chat, { toolCallId, answer: { kind: "approval", approved: true }, autoContinue: true }, undefined);
}

/** The calls of the first answer: `id state`. */
function calls({ chat }: TestDesk): string[] {
  const answer = chat.transcripts
    .of("main")
    .list()
    .find(({ role }) => role === "assistant");
  return answer === undefined ? [] : toolParts(answer).map(({ toolCallId, state }) => `${toolCallId} ${state}`);
}

function errors({ chat }: TestDesk): (string | undefined)[] {
  const answer = chat.transcripts
    .of("main")
    .list()
    .find(({ role }) => role === "assistant");
  return answer === undefined ? [] : toolParts(answer).map(({ errorText }) => errorText);
}

test("an approved call begins only when it would be known after a power loss that it has", async () => {
  const desk = await asked("c1");
  const { promise, resolve } = Promise.withResolvers<void>();
  const { host } = desk;
  const durable = host.durable.bind(host);
  host.durable = async () => {
    await promise;
    await durable();
  };
  approve(desk, "c1");
  await later(desk);
  expect(desk.calls).toBe(1);
  expect(desk.chat.running?.row.attempts).toBe(0);
  resolve();
  const stage = await desk.stage();
  expect(stage.options.continuation).toBe(true);
});

test("while a turn that was cut waits for room, a yes to its question counts: the call runs behind it", async () => {
  const desk = await openDesk();
  desk.send("u1");
  const stage = await desk.stage();
  stage.ask("c1", "send", { to: "c1" });
  await until(() => calls(desk).includes("c1 approval-requested"), "the question");
  // The next life cannot begin the turn at first.
  const { host } = desk;
  const tx = host.tx.bind(host);
  host.tx = () => {
    throw new PerdureError("disk_full", "No room.");
  };
  const chat = desk.restart();
  await until(() => desk.told.some((line) => line.includes("No room")), "the attempt that finds no room");
  expect(chat.running).toBeUndefined();
  host.tx = tx;
  expect(approve(desk, "c1")).toBe(true);
  expect(calls(desk)).toEqual(["c1 approval-responded"]);
  await later(desk);
  const next = await desk.stage();
  expect(next.options.continuation).toBe(true);
  expect(calls(desk)).toEqual(["c1 approval-responded"]);
  next.push({ type: "tool-output-available", toolCallId: "c1", output: "sent" }).end();
  await until(() => calls(desk).includes("c1 output-available"), "the result");
});

test("a message while another question of the same answer is open: what was approved is told as not run", async () => {
  const desk = await asked("c1", "c2");
  approve(desk, "c1");
  desk.send("u2");
  const stage = await desk.stage();
  expect(stage.options.requestId).toBe("r-u2");
  expect(calls(desk)).toEqual(["c1 output-error", "c2 output-error"]);
  expect(errors(desk)).toEqual([NOT_BEGUN_TEXT, INTERRUPTED_TEXT]);
  stage.say("Fine.").end();
  await until(() => desk.told.includes("ended r-u2 completed"), "the end of the turn");
  await later(desk);
  expect(desk.calls).toBe(2);
});

test("a yes after a message that waits: the call runs before that is answered", async () => {
  const desk = await openDesk();
  desk.send("u1");
  const stage = await desk.stage();
  stage.ask("c1", "send", { to: "c1" });
  await until(() => calls(desk).length === 1, "the question");
  desk.send("u2");
  expect(approve(desk, "c1")).toBe(true);
  stage.end("tool-calls");
  await until(() => desk.told.includes("ended r-u1 completed"), "the end of the turn that asks");
  await later(desk);
  const next = await desk.stage();
  expect(next.options.continuation).toBe(true);
  expect(next.messages.at(-1)?.role).toBe("assistant");
  expect(calls(desk)).toEqual(["c1 approval-responded"]);
  next.push({ type: "tool-output-available", toolCallId: "c1", output: "sent" }).end();
  expect((await desk.stage()).options.requestId).toBe("r-u2");
  expect(desk.ids().at(-1)).toBe("u2");
});

test("messages that are pushed behind a yes do not undo it: the call runs, and its answer stands before them", async () => {
  const desk = await asked("c1");
  approve(desk, "c1");
  persist(desk.chat, [user("u2", "by the way")], { session: "main" });
  await later(desk);
  const stage = await desk.stage();
  expect(stage.options.continuation).toBe(true);
  expect(stage.messages.at(-1)?.role).toBe("assistant");
  stage.push({ type: "tool-output-available", toolCallId: "c1", output: "sent" }).end();
  await until(() => calls(desk).includes("c1 output-available"), "the result");
  expect(desk.ids().at(-1)).toBe("u2");
});

test("while a turn that was cut waits for room, a client's result for a call of a step that was not over is none", async () => {
  const desk = await openDesk();
  desk.send("u1");
  (await desk.stage()).call("c1");
  await until(
    () => (desk.chat.running?.log.count ?? 0) > 0 && desk.chat.running?.message.parts.length === 2,
    "the call",
  );
  const { host } = desk;
  const tx = host.tx.bind(host);
  host.tx = () => {
    throw new PerdureError("disk_full", "No room.");
  };
  desk.restart();
  await until(() => desk.told.some((line) => line.includes("No room")), "the attempt that finds no room");
  host.tx = tx;
  const given = { toolCallId: "c1", answer: { kind: "result", result: { output: "made up" } } } as const;
  expect(answerTool(desk.chat, { ...given, overHttp: true, autoContinue: true }, undefined)).toBe(false);
});
