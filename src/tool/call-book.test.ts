import { expect, test } from "vitest";
import { probeHost, type ProbeHost } from "../../test/chat/probe-host.ts";
import { nextQuestionExpiry, overdueQuestions } from "../store/tool-call.ts";
import { CallBook, type CallIntent, type CallQuestion } from "./call-book.ts";

async function open(): Promise<ProbeHost & { book: CallBook }> {
  const probe = await probeHost();
  return { ...probe, book: new CallBook(probe.host) };
}

function call(toolCallId: string, over: Partial<CallIntent> = {}): CallIntent {
  const base = { messageId: "m1", turnId: "t1", step: 0, tool: "send", input: { to: "ada" }, digest: "d1" };
  return { ...base, toolCallId, replay: "never", ...over };
}

function question(toolCallId: string, over: Partial<CallQuestion> = {}): CallQuestion {
  return { ...call(toolCallId), expiresAt: null, ...over };
}

const refused = expect.objectContaining({ code: "bad_state" });
const statuses = (book: CallBook, messageId = "m1") =>
  book.of(messageId).map((row) => `${row.toolCallId} ${row.status} ${row.attempts}`);

test("a call is counted before it runs and settled once; then its input is forgotten", async () => {
  const { host, clock, book } = await open();
  host.tx(() => {
    book.start(call("a"));
    book.start(call("b", { tool: "read", replay: "safe" }));
  });
  const now = clock.now();
  expect(book.of("m1")).toMatchObject([
    { toolCallId: "a", status: "started", attempts: 1, startedAt: now, settledAt: null, input: { to: "ada" } },
    { toolCallId: "b", status: "started", attempts: 1, tool: "read", replay: "safe", turnId: "t1", step: 0 },
  ]);
  expect([book.settle("m1", "a", now + 1), book.settle("m1", "a", now + 2)]).toEqual([true, false]);
  expect(book.of("m1")[0]).toMatchObject({ status: "settled", settledAt: now + 1, input: undefined, digest: "d1" });
  expect(book.settle("m1", "nobody", now)).toBe(false);
  expect(statuses(new CallBook(host))).toEqual(["a settled 1", "b started 1"]);
});

test("only what says that it is safe starts a second time, and never with other arguments", async () => {
  const { clock, book } = await open();
  book.start(call("never"));
  expect(() => book.start(call("never"))).toThrow(refused);
  book.start(call("safe", { replay: "safe" }));
  expect(() => book.start(call("safe", { replay: "safe", digest: "d2" }))).toThrow(refused);
  book.start(call("safe", { replay: "safe", turnId: "t2", step: 3 }));
  expect(book.of("m1")[1]).toMatchObject({ status: "started", attempts: 2, turnId: "t2", step: 3 });
  book.settle("m1", "safe", clock.now());
  expect(() => book.start(call("safe", { replay: "safe" }))).toThrow(refused);
  expect(statuses(book)).toEqual(["never started 1", "safe settled 2"]);
});

test("a question is listed until it is answered, and the call runs only when it was approved", async () => {
  const { host, clock, book } = await open();
  const now = clock.now();
  const asked = book.ask(question("a", { summary: "Send to Ada", expiresAt: now + 100 }));
  expect(asked).toMatchObject({ status: "asked", attempts: 0, askedAt: now, expiresAt: now + 100 });
  expect(book.pendingApprovals()).toEqual([
    {
      messageId: "m1",
      toolCallId: "a",
      tool: "send",
      input: { to: "ada" },
      digest: "d1",
      summary: "Send to Ada",
      askedAt: now,
      expiresAt: now + 100,
    },
  ]);
  expect(() => book.start(call("a"))).toThrow(refused);
  const decided = book.decide("a", { approved: true, approver: "grace", reason: "fine", digest: "d1", now: now + 1 });
  expect(decided).toMatchObject({
    kind: "decided",
    row: { status: "approved", approver: "grace", reason: "fine", decidedAt: now + 1 },
  });
  expect([book.pendingApprovals(), nextQuestionExpiry(host), overdueQuestions(host, now + 1_000)]).toEqual([
    [],
    null,
    [],
  ]);
  expect(() => book.start(call("a", { digest: "d2" }))).toThrow(refused);
  book.start(call("a"));
  book.settle("m1", "a", now + 5);
  expect(book.approvals(10)).toMatchObject([
    {
      toolCallId: "a",
      decision: "approved",
      approver: "grace",
      reason: "fine",
      decidedAt: now + 1,
      input: { to: "ada" },
    },
  ]);
});

test("a call is asked about once", async () => {
  const { clock, book } = await open();
  const first = book.ask(question("a"));
  await clock.advance(10);
  expect(book.ask(question("a", { expiresAt: 7, summary: "again", digest: "d2" }))).toEqual(first);
  book.decide("a", { approved: false, now: clock.now() });
  expect(book.ask(question("a")).status).toBe("denied");
  book.start(call("b"));
  expect(book.ask(question("b")).status).toBe("started");
});

test("the first answer counts; what was denied never starts", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  book.ask(question("a"));
  expect(book.decide("a", { approved: false, reason: "no", now })).toMatchObject({ kind: "decided" });
  expect(book.decide("a", { approved: true, now })).toMatchObject({ kind: "late", row: { status: "denied" } });
  expect(() => book.start(call("a"))).toThrow(refused);
  expect([book.settle("m1", "a", now), book.settle("m1", "a", now)]).toEqual([true, false]);
  expect(statuses(book)).toEqual(["a denied 0"]);
  expect(book.approvals(10)).toMatchObject([{ decision: "denied", reason: "no", approver: null }]);
});

test("an answer to other arguments, or to what nobody asked, changes nothing", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  book.ask(question("a"));
  book.start(call("b"));
  expect(book.decide("a", { approved: true, digest: "d2", now })).toEqual({ kind: "mismatch" });
  expect(book.decide("b", { approved: true, now })).toEqual({ kind: "unknown" });
  expect(book.decide("nobody", { approved: true, now })).toEqual({ kind: "unknown" });
  expect(statuses(book)).toEqual(["a asked 0", "b started 1"]);
});

test("where ids repeat, the newest open question is meant, or the one with the arguments that were seen", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  for (const messageId of ["m1", "m2", "m3"]) book.ask(question("call_0", { messageId, digest: messageId }));
  const answer = (digest?: string) => {
    const decided = book.decide("call_0", { approved: true, now, ...(digest !== undefined && { digest }) });
    return decided.kind === "decided" || decided.kind === "late"
      ? `${decided.kind} ${decided.row.messageId}`
      : decided.kind;
  };
  expect([answer("m1"), answer("m1"), answer(), answer(), answer()]).toEqual([
    "decided m1",
    "mismatch",
    "decided m3",
    "decided m2",
    "late m3",
  ]);
});

test("an answer that names its message is about no other one, however many calls have that id", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  for (const messageId of ["m1", "m2"]) book.ask(question("call_0", { messageId }));
  expect(book.decide("call_0", { messageId: "m1", approved: true, now })).toMatchObject({ kind: "decided" });
  expect([...statuses(book, "m1"), ...statuses(book, "m2")]).toEqual(["call_0 approved 0", "call_0 asked 0"]);
  expect(book.decide("call_0", { messageId: "m3", approved: true, now })).toEqual({ kind: "unknown" });
});

test("a yes to the first question of a call is none to the second, which nobody has answered", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  const what = (tool: string) => ({ tool, input: {}, digest: tool, expiresAt: null, state: new Uint8Array([1]) });
  for (const id of ["stopped", "late"]) {
    book.start(call(id));
    book.park({ messageId: "m1", toolCallId: id }, what("flight"));
    book.decide(id, { approved: true, approver: "grace", now });
    book.start(call(id));
    book.park({ messageId: "m1", toolCallId: id }, what("hotel"));
  }
  book.settle("m1", "stopped", now + 1);
  book.expire({ messageId: "m1", toolCallId: "late" }, now + 1);
  book.settle("m1", "late", now + 2);
  expect(statuses(book)).toEqual(["stopped settled 2", "late expired 2"]);
  expect(book.approvals(10)).toMatchObject([
    { toolCallId: "late", tool: "hotel", decision: "expired", approver: null },
  ]);
});

test("after its time a question is late to answer, then closed, once", async () => {
  const { host, clock, book } = await open();
  const now = clock.now();
  book.ask(question("late", { expiresAt: now + 50 }));
  book.ask(question("soon", { expiresAt: now + 20 }));
  book.ask(question("never"));
  expect([nextQuestionExpiry(host), overdueQuestions(host, now + 19)]).toEqual([now + 20, []]);
  expect(book.decide("soon", { approved: true, now: now + 20 })).toMatchObject({
    kind: "late",
    row: { status: "asked" },
  });
  expect(overdueQuestions(host, now + 60).map(({ toolCallId }) => toolCallId)).toEqual(["soon", "late"]);
  for (const row of overdueQuestions(host, now + 20)) expect(book.expire(row, now + 21)).toBe(true);
  expect(book.expire({ messageId: "m1", toolCallId: "soon" }, now + 22)).toBe(false);
  expect(book.expire({ messageId: "m1", toolCallId: "nobody" }, now)).toBe(false);
  expect(nextQuestionExpiry(host)).toBe(now + 50);
  expect(() => book.start(call("soon"))).toThrow(refused);
  expect(book.approvals(10)).toMatchObject([{ toolCallId: "soon", decision: "expired", decidedAt: now + 21 }]);
});

test("a question of a turn that was stopped is settled and is no decision", async () => {
  const { host, clock, book } = await open();
  book.ask(question("a", { expiresAt: clock.now() + 9 }));
  expect(book.settle("m1", "a", clock.now())).toBe(true);
  expect([book.pendingApprovals(), book.approvals(10), nextQuestionExpiry(host)]).toEqual([[], [], null]);
  expect(book.decide("a", { approved: true, now: clock.now() })).toMatchObject({ kind: "late" });
});

test("what is undone was never written", async () => {
  const { host, book } = await open();
  expect(() =>
    host.tx(() => {
      book.start(call("a"));
      book.ask(question("b"));
      throw new Error("undo");
    }),
  ).toThrow("undo");
  expect(book.of("m1")).toEqual([]);
});

test("an input that no row can hold is refused before the call runs", async () => {
  const { book } = await open();
  const huge = call("a", { input: { text: "x".repeat(2_000_000) } });
  expect(() => book.start(huge)).toThrow(expect.objectContaining({ code: "limit" }));
  expect(() => book.ask({ ...huge, expiresAt: null })).toThrow(expect.objectContaining({ code: "limit" }));
  book.start(call("b", { input: undefined }));
  expect(book.of("m1")).toMatchObject([{ toolCallId: "b", input: null }]);
});

test("calls are forgotten by message, by age or all; by age never an open one", async () => {
  const { clock, book } = await open();
  const now = clock.now();
  for (const id of ["a", "b", "c", "d"]) book.start(call(id));
  for (const id of ["a", "c", "d"]) book.settle("m1", id, now);
  book.ask(question("e"));
  book.ask(question("f"));
  book.decide("f", { approved: false, now });
  book.start(call("x", { messageId: "m2" }));
  book.forgetOlder(100);
  expect(statuses(book)).toHaveLength(6);
  book.forgetOlder(4);
  expect(statuses(book)).toEqual(["b started 1", "d settled 1", "e asked 0", "f denied 0"]);
  book.forgetOlder(0);
  expect(statuses(book)).toEqual(["b started 1", "e asked 0"]);
  book.forget("m1");
  expect([book.of("m1"), statuses(book, "m2")]).toEqual([[], ["x started 1"]]);
  book.forgetLost();
  expect(book.of("m2")).toEqual([]);
});
