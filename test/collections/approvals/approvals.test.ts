import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import { createApprovals, getApprovalStatus, logCollectionOptions, openLocalLog } from "perdure/collections";
import type { ApprovalEvent, Approvals, RowLog } from "perdure/collections";
import { manualClock } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { hardOfHearing } from "../claims/bad-lines.ts";
import { until } from "../../support/until.ts";

const AGENT = { actorId: "agent" };
const ANN = { actorId: "ann" };
const BOB = { actorId: "bob" };

describe.each(backends)("approvals: $name", ({ start }) => {
  let place: TestPlace;
  let server: RowLog;
  let phone: RowLog;
  beforeAll(async () => {
    place = await start();
    server = await place.open();
    phone = await place.open();
  });
  afterAll(() => place.stop());

  let count = 0;
  /** The same events on two devices. */
  const devices = (expiresAfterMs?: number) => {
    const name = `approvals${++count}`;
    const clock = manualClock();
    const [here, there] = [server, phone].map((log) => {
      const events = createCollection(
        logCollectionOptions<ApprovalEvent>({ log, name, getKey: (row) => row.id, orderAs: "seq" }),
      );
      const approvals = createApprovals({ events, clock, ...(expiresAfterMs === undefined ? {} : { expiresAfterMs }) });
      return Object.assign(approvals, { events });
    });
    return { here: here!, there: there!, clock };
  };
  const actions = (approvals: Approvals, id: string) =>
    approvals.history(id).map(({ action, actorId }) => `${action} by ${actorId}`);

  test("requirement: Approvals: asked on the server, approved on the phone, known to both, and kept for whoever comes later", async () => {
    const { here, there } = devices();
    expect(here.status("call")).toBe("none");
    expect(await here.request("call", { ...AGENT, reason: "it deletes files" })).toBe("pending");
    await until(() => there.pending().length === 1);
    expect(there.pending()).toMatchObject([{ toolCallId: "call", actorId: "agent", reason: "it deletes files" }]);
    const decided = here.decided("call");
    expect(await there.approve("call", { ...ANN, reason: "go" })).toBe("approved");
    expect(await decided).toBe("approved");
    expect(here.decision("call")).toMatchObject({ actorId: "ann", reason: "go", action: "approved" });
    expect(here.pending()).toEqual([]);
    expect(getApprovalStatus(here.events.toArray, "call")).toBe("approved");
    const late = await place.open();
    const events = createCollection(
      logCollectionOptions<ApprovalEvent>({ log: late, name: `approvals${count}`, getKey: (row) => row.id }),
    );
    const reader = createApprovals({ events });
    await reader.ready;
    await until(() => reader.status("call") === "approved");
    expect(actions(reader, "call")).toEqual(["requested by agent", "approved by ann"]);
  });

  test("of contradicting decisions the first in the log counts, on all devices, and the other is on record", async () => {
    const { here, there } = devices();
    for (let n = 0; n < 10; n++) {
      const call = `call${n}`;
      await here.request(call, AGENT);
      const outcomes = await Promise.all([there.deny(call, ANN), here.approve(call, BOB)]);
      await until(() => there.history(call).length === 3 && here.history(call).length === 3);
      const [, first] = here.history(call);
      expect(here.status(call)).toBe(first?.action);
      expect(there.status(call)).toBe(first?.action);
      expect(getApprovalStatus(there.events.toArray, call)).toBe(first?.action);
      // Whoever was second has learned that it was.
      expect(outcomes[first?.actorId === "ann" ? 1 : 0]).toBe(first?.action);
      expect(actions(here, call)).toEqual(actions(there, call));
    }
    // Long after it was acted upon, nobody can turn it round.
    await here.request("old", AGENT);
    await here.approve("old", ANN);
    expect(await here.deny("old", BOB)).toBe("approved");
    expect(await here.expire("old")).toBe("approved");
  });

  test("many may ask for the same call: it is one request, and a decided one is not opened again by accident", async () => {
    const { here, there } = devices();
    await Promise.all([here.request("call", AGENT), there.request("call", AGENT), here.request("call", AGENT)]);
    expect(actions(here, "call")).toEqual(["requested by agent"]);
    await here.deny("call", ANN);
    await until(() => there.status("call") === "denied");
    expect(await there.request("call", AGENT)).toBe("denied");
    // Asked anew on purpose, by both at once: one new round, to be decided anew.
    await until(() => here.status("call") === "denied");
    await Promise.all([
      here.request("call", { ...AGENT, again: true }),
      there.request("call", { ...AGENT, again: true }),
    ]);
    expect(here.status("call")).toBe("pending");
    expect(await here.approve("call", ANN)).toBe("approved");
    expect(actions(here, "call")).toEqual([
      "requested by agent",
      "denied by ann",
      "requested by agent",
      "approved by ann",
    ]);
  });

  test("a request that nobody answers expires once, on all devices; an answer that comes later does not count", async () => {
    const { here, there, clock } = devices(60_000);
    await here.request("call", AGENT);
    await here.request("answered", AGENT);
    await until(() => there.pending().length === 2);
    await there.approve("answered", ANN);
    await until(() => here.status("answered") === "approved");
    await clock.advance(59_999);
    expect(here.status("call")).toBe("pending");
    await clock.advance(1);
    await until(() => here.status("call") === "expired" && there.status("call") === "expired");
    expect(await there.approve("call", ANN)).toBe("expired");
    expect(actions(there, "call")).toEqual(["requested by agent", "expired by perdure:expiry", "approved by ann"]);
    expect(here.history("answered")).toHaveLength(2);
    here.dispose();
    there.dispose();
    expect(clock.pending()).toBe(0);
  });

  test("waiting for a decision can be given up; listeners hear of events", async () => {
    const { here } = devices();
    let heard = 0;
    const stop = here.subscribe(() => heard++);
    const control = new AbortController();
    const waiting = here.decided("call", { signal: control.signal });
    await here.request("call", AGENT);
    expect(heard).toBeGreaterThan(0);
    control.abort("enough");
    await expect(waiting).rejects.toBe("enough");
    stop();
    const before = heard;
    await here.deny("call", ANN);
    expect(heard).toBe(before);
    expect(await here.decided("call")).toBe("denied");
  });
});

test("a decision is about the request that was seen, and not about a later one", async () => {
  const log = openLocalLog();
  const phone = hardOfHearing(log, "a");
  const [here, there] = [log, phone.log].map((own) => {
    const options = logCollectionOptions<ApprovalEvent>({ log: own, name: "a", getKey: (row) => row.id });
    return createApprovals({ events: createCollection(options) });
  });
  await here!.request("call", AGENT);
  await there!.ready;
  phone.stop();
  await here!.deny("call", BOB);
  await here!.request("call", { ...AGENT, again: true });
  expect(there!.pending()).toMatchObject([{ id: "call:requested:1" }]);
  expect(await there!.approve("call", ANN)).toBe("pending");
  expect(here!.status("call")).toBe("pending");
  expect(await there!.approve("call", ANN)).toBe("approved");
});

test("approvals that are disposed before their events are here expire nothing", async () => {
  const options = logCollectionOptions<ApprovalEvent>({ log: openLocalLog(), name: "a", getKey: (row) => row.id });
  const events = createCollection(options);
  await createApprovals({ events }).request("call", AGENT);
  const clock = manualClock();
  const late = createApprovals({ events, clock, expiresAfterMs: 1_000 });
  late.dispose();
  await late.ready;
  expect(clock.pending()).toBe(0);
});

test("requests wait in the order in which they were made, also where rows do not show their place", async () => {
  const options = logCollectionOptions<ApprovalEvent>({ log: openLocalLog(), name: "a", getKey: (row) => row.id });
  const approvals = createApprovals({ events: createCollection(options) });
  await approvals.request("a", AGENT);
  await approvals.deny("a", ANN);
  await approvals.request("b", AGENT);
  await approvals.request("a", { ...AGENT, again: true });
  expect(approvals.pending().map(({ toolCallId }) => toolCallId)).toEqual(["b", "a"]);
});

test("approvals also work in one process, in a collection that is on no log", async () => {
  const events = createCollection(localOnlyCollectionOptions<ApprovalEvent, string>({ getKey: (row) => row.id }));
  const approvals = createApprovals({ events });
  // All within a millisecond, again and again: the order is kept.
  for (let n = 0; n < 20; n++) {
    await approvals.request(`call ${n}`, AGENT);
    expect(approvals.status(`call ${n}`)).toBe("pending");
    expect(await approvals.deny(`call ${n}`, ANN)).toBe("denied");
    expect(await approvals.request(`call ${n}`, { ...AGENT, again: true })).toBe("pending");
    expect(await approvals.approve(`call ${n}`, ANN)).toBe("approved");
  }
});

test("the status follows from the places of events, not from their times or from the order they are listed in", () => {
  const event = (seq: number, action: ApprovalEvent["action"], timestamp: string): ApprovalEvent => ({
    ...{ id: `${seq}`, toolCallId: "call", actorId: "x", seq, action, timestamp },
  });
  const events = [
    event(3, "denied", "2026-01-01T00:00:01Z"),
    event(2, "approved", "2026-01-01T00:00:09Z"),
    event(1, "requested", "2026-01-01T00:00:05Z"),
  ];
  expect(getApprovalStatus(events, "call")).toBe("approved");
  expect(getApprovalStatus(events, "another")).toBe("none");
  // Where no place is told, times decide.
  const unplaced = events.map(({ seq: _, ...rest }) => rest);
  expect(getApprovalStatus(unplaced, "call")).toBe("approved");
  expect(getApprovalStatus([event(1, "denied", "")], "call")).toBe("denied");
});
