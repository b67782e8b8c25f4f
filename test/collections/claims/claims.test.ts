import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import { createClaims } from "perdure/collections";
import type { Claim, ClaimRecord, Claims, RowLog } from "perdure/collections";
import { manualClock } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { cutOff, hardOfHearing } from "./bad-lines.ts";
import { openWorker } from "./desk.ts";
import { until } from "../../support/until.ts";

/** The claim, or what stood in the way as an error. */
async function take(claims: Claims, id: string): Promise<Claim> {
  const got = await claims.acquire(id);
  if (got.claim === undefined) throw new Error(`not given: ${JSON.stringify(got)}`);
  return got.claim;
}

describe.each(backends)("claims: $name", ({ start }) => {
  let place: TestPlace;
  let one: RowLog;
  let other: RowLog;
  beforeAll(async () => {
    place = await start();
    one = await place.open();
    other = await place.open();
  });
  afterAll(() => place.stop());

  /** Two workers on logs of their own, in tables of the test's own, whose time stands still. */
  let count = 0;
  const pair = (owners: [string, string] = ["ann", "bob"]) => {
    const prefix = `c${++count}-`;
    const clock = manualClock();
    const lost: string[] = [];
    const [ann, bob] = [one, other].map((log, at) =>
      openWorker(log, {
        prefix,
        owner: owners[at] ?? "",
        clock,
        leaseMs: 30_000,
        maxAttempts: 3,
        onLost: (claim, reason) => lost.push(`${claim.owner} ${reason.code}`),
      }),
    );
    return { ann: ann!, bob: bob!, clock, lost, prefix };
  };

  test("who asks again each time when told of a change gets what its own process has given back", async () => {
    const { ann } = pair();
    const claim = await take(ann.claims, "job");
    let again: Claim | undefined;
    ann.claims.subscribe(() => void ann.claims.acquire("job").then((got) => (again ??= got.claim)));
    await claim.release();
    await until(() => again !== undefined);
    expect(again).toMatchObject({ id: "job", attempt: 1 });
  });

  test("nor does it wait for what another of its process had asked for and gave back at once", async () => {
    const { ann } = pair();
    const gone = new AbortController();
    const asked = ann.claims.acquire("job", { signal: gone.signal });
    gone.abort(new Error("gone"));
    let again: Claim | undefined;
    ann.claims.subscribe(() => void ann.claims.acquire("job").then((got) => (again ??= got.claim)));
    await expect(asked).rejects.toThrow("gone");
    await until(() => again !== undefined);
    expect(again).toMatchObject({ id: "job", attempt: 1 });
    expect(await ann.claims.acquire("job")).toMatchObject({ heldBy: "ann" });
  });

  test("two that race for 200 ids: each goes to one of them", async () => {
    const { ann, bob } = pair();
    const ids = Array.from({ length: 200 }, (_, n) => `job:${n}`);
    const won = await Promise.all(
      ids.map(async (id) => {
        const got = await Promise.all([ann.claims.acquire(id), bob.claims.acquire(id)]);
        return got.map(({ claim, heldBy }) => (claim === undefined ? `left to ${heldBy}` : `won by ${claim.owner}`));
      }),
    );
    for (const outcome of won) {
      expect([
        ["won by ann", "left to ann"],
        ["left to bob", "won by bob"],
      ]).toContainEqual(outcome);
    }
    await Promise.all([ann.claims.dispose(), bob.claims.dispose()]);
    await until(() => ann.claims.inspect("job:199").state === "free" && bob.claims.inspect("job:0").state === "free");
  });

  test("a holder that beats keeps it, however long it takes; a released one is free at once", async () => {
    const { ann, bob, clock } = pair();
    const claim = await take(ann.claims, "long");
    await until(() => bob.claims.inspect("long").state === "held");
    for (let beats = 0; beats < 12; beats++) {
      const before = bob.beats("long");
      await clock.advance(10_000);
      await until(() => bob.beats("long") > before);
    }
    expect(await bob.claims.acquire("long")).toMatchObject({ heldBy: "ann" });
    expect(claim.signal.aborted).toBe(false);
    // Beats are no change of hands: what it writes still counts.
    expect(await ann.rows.insert({ id: "long", status: "done" }, { when: [claim.condition()] })).toBe(true);
    expect(await claim.release()).toBe(true);
    expect(await claim.release()).toBe(false);
    await until(() => bob.claims.inspect("long").state === "free");
    const next = await take(bob.claims, "long");
    expect(next.attempt).toBe(1);
    expect(next.fence).toBeGreaterThan(claim.fence);
    await next.release();
  });

  test("the result can be written and the claim released in one write", async () => {
    const { ann, bob, prefix } = pair();
    const claim = await take(ann.claims, "a");
    const changes = [
      { table: `${prefix}jobs`, key: "a", operation: "insert", value: { id: "a", status: "done" } } as const,
    ];
    const never = { table: `${prefix}jobs`, key: "a", version: 7 };
    expect(await claim.release({ changes, when: [never] })).toBe(false);
    expect(ann.claims.inspect("a")).toMatchObject({ state: "held", mine: true });
    expect(await claim.release({ changes })).toBe(true);
    await until(() => bob.rows.get("a")?.status === "done");
    expect(bob.claims.inspect("a").state).toBe("free");
  });

  test("who was silent for a lease is taken over from, and its late result is refused", async () => {
    const { ann, bob, clock, lost, prefix } = pair();
    // It was taken, and then its process was stopped: nothing beats.
    const dead = openWorker(one, { prefix, owner: "dan", clock: manualClock(), leaseMs: 30_000 });
    const late = await take(dead.claims, "a");
    await until(() => bob.claims.inspect("a").state === "held");
    await clock.advance(29_999);
    expect(await bob.claims.acquire("a")).toEqual({ heldBy: "dan", retryInMs: 1 });
    await clock.advance(1);
    expect(bob.claims.inspect("a").state).toBe("expired");
    const claim = await take(bob.claims, "a");
    expect(claim.attempt).toBe(2);
    expect(await bob.rows.insert({ id: "a", status: "bob's" }, { when: [claim.condition()] })).toBe(true);
    await until(() => dead.rows.get("a") !== undefined);
    expect(await dead.rows.update("a", (row) => void (row.status = "dan's"), { when: [late.condition()] })).toBe(false);
    await until(() => late.signal.aborted);
    expect(late.signal.reason).toMatchObject({ code: "fenced" });
    expect(await late.release()).toBe(false);
    expect(await late.fail("late")).toBe("lost");
    expect(dead.rows.get("a")?.status).toBe("bob's");
    expect(ann.claims.inspect("a")).toMatchObject({ owner: "bob", attempt: 2 });
    expect(lost).toEqual([]);
    await claim.release();
  });

  test("a producer of an earlier holder is shut out by the next", async () => {
    const { ann, bob, prefix } = pair();
    const first = await take(ann.claims, "p");
    await ann.rows.insert({ id: "x", status: "1" }, { producer: first.producer });
    await first.release();
    await until(() => bob.claims.inspect("p").state === "free");
    const second = await take(bob.claims, "p");
    await bob.rows.insert({ id: "y", status: "2" }, { producer: second.producer });
    const write = { table: `${prefix}jobs`, key: "z", operation: "insert", value: { id: "z" } } as const;
    await expect(one.write({ changes: [write], producer: first.producer })).rejects.toMatchObject({ code: "fenced" });
  });

  test("the same owner in a new life takes over at once, and the old one gets nothing any more", async () => {
    const { ann: old, bob: young, lost } = pair(["box", "box"]);
    const before = await take(old.claims, "a");
    await until(() => young.claims.inspect("a").state === "held");
    const after = await take(young.claims, "a");
    await until(() => before.signal.aborted);
    expect(lost).toEqual(["box fenced"]);
    expect(after.attempt).toBe(2);
    await expect(old.claims.acquire("b")).rejects.toMatchObject({ code: "fenced" });
    expect((await young.claims.acquire("b")).claim).toBeDefined();
  });

  test("work that fails again and again becomes a dead letter, and can be revived", async () => {
    const { ann, bob } = pair();
    expect(await (await take(ann.claims, "bad")).fail(new Error("first"))).toBe("free");
    await until(() => bob.claims.inspect("bad").state === "free" && bob.claims.inspect("bad").attempt === 1);
    const second = await take(bob.claims, "bad");
    expect(second.attempt).toBe(2);
    // A try that was not begun is not counted.
    expect(await second.giveBack()).toBe(true);
    expect(await (await take(bob.claims, "bad")).fail("second")).toBe("free");
    const third = await take(bob.claims, "bad");
    expect(third.attempt).toBe(3);
    expect(await third.fail(new Error("third"))).toBe("dead");
    await until(() => ann.claims.inspect("bad").state === "dead");
    expect(await ann.claims.acquire("bad")).toMatchObject({ dead: { id: "bad", error: "third", attempt: 3 } });
    expect(await (await take(ann.claims, "worse")).fail("no use", { retry: false })).toBe("dead");
    await until(() => bob.claims.deadLetters().length === 2);
    expect(bob.claims.deadLetters().map(({ id, error }) => `${id}: ${error}`)).toEqual(["bad: third", "worse: no use"]);
    expect(await bob.claims.revive("bad")).toBe(true);
    expect(await bob.claims.revive("bad")).toBe(false);
    expect((await take(bob.claims, "bad")).attempt).toBe(1);
  });

  test("work whose workers crash at it again and again becomes a dead letter too", async () => {
    const { bob, clock, prefix } = pair();
    for (let attempt = 1; attempt <= 3; attempt++) {
      // Its process dies without a word each time.
      const worker = openWorker(one, { prefix, owner: "dan", clock: manualClock(), maxAttempts: 3, leaseMs: 30_000 });
      expect((await take(worker.claims, "poison")).attempt).toBe(attempt);
    }
    await until(() => bob.claims.inspect("poison").attempt === 3);
    await clock.advance(30_000);
    const got = await bob.claims.acquire("poison");
    expect(got.dead).toMatchObject({ id: "poison", attempt: 3, owner: "dan" });
    expect(got.dead?.error).toContain("stopped without a result");
  });

  test("who cannot hear a holder that lives does not take over from it", async () => {
    const { bob, clock, prefix } = pair();
    const claim = await take(bob.claims, "a");
    // Its reader hangs: it has not heard the last beats.
    const deaf = hardOfHearing(one, `${prefix}claims`);
    const clockOfAnn = manualClock();
    const ann = openWorker(deaf.log, { prefix, owner: "ann", clock: clockOfAnn, leaseMs: 30_000 });
    await until(() => ann.claims.inspect("a").state === "held");
    deaf.stop();
    const before = bob.beats("a");
    await clock.advance(10_000);
    await until(() => bob.beats("a") > before);
    await clockOfAnn.advance(60_000);
    expect(ann.claims.inspect("a").state).toBe("expired");
    expect(await ann.claims.acquire("a")).toMatchObject({ heldBy: "bob" });
    expect(claim.signal.aborted).toBe(false);
    await claim.release();
  });

  test("of two that see a lease run out, or a try fail, one gets the next", async () => {
    const { ann, bob, clock, prefix } = pair();
    const ids = Array.from({ length: 20 }, (_, n) => `job ${n}`);
    const dead = openWorker(one, { prefix, owner: "dan", clock: manualClock(), leaseMs: 30_000 });
    for (const id of ids) {
      const claim = await take(dead.claims, id);
      if (id.endsWith("5")) await claim.fail("no luck");
    }
    const seen = ({ claims }: typeof ann) => claims.inspect("job 19").state === "held";
    await until(() => seen(ann) && seen(bob));
    await clock.advance(30_000);
    const got = await Promise.all(ids.flatMap((id) => [ann.claims.acquire(id), bob.claims.acquire(id)]));
    const taken = got.flatMap(({ claim }) => (claim === undefined ? [] : [claim]));
    expect(taken.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(new Set(taken.map(({ attempt }) => attempt))).toEqual(new Set([2]));
    await Promise.all([ann.claims.dispose(), bob.claims.dispose()]);
  });

  test("who does not know yet that it was taken over from cannot release what is another's", async () => {
    const { bob, clock, prefix } = pair();
    const deaf = hardOfHearing(one, `${prefix}claims`);
    const late = openWorker(deaf.log, { prefix, owner: "late", clock: manualClock(), leaseMs: 30_000 });
    const before = await take(late.claims, "a");
    await until(() => bob.claims.inspect("a").state === "held");
    deaf.stop();
    await clock.advance(30_000);
    const claim = await take(bob.claims, "a");
    expect(before.signal.aborted).toBe(false);
    expect(await before.release()).toBe(false);
    expect(before.signal.reason).toMatchObject({ code: "fenced" });
    expect(bob.claims.inspect("a")).toMatchObject({ state: "held", owner: "bob", mine: true });
    expect(await claim.release()).toBe(true);
  });

  test("somebody else can ask the holder to stop; what it then writes still counts", async () => {
    const { ann, bob, clock } = pair();
    expect(await bob.claims.requestCancel("a")).toBe(false);
    const claim = await take(ann.claims, "a");
    await until(() => bob.claims.inspect("a").state === "held");
    const before = ann.beats("a");
    await Promise.all([bob.claims.requestCancel("a", "not needed any more"), clock.advance(10_000)]);
    await until(() => claim.signal.aborted && ann.beats("a") > before);
    expect(claim.signal.reason).toMatchObject({ code: "cancelled" });
    expect(String(claim.signal.reason)).toContain("not needed any more");
    expect(await ann.rows.insert({ id: "a", status: "cancelled" }, { when: [claim.condition()] })).toBe(true);
    expect(await claim.release()).toBe(true);
    // The request was for that try, not for the next.
    const next = await take(ann.claims, "a");
    expect(next.signal.aborted).toBe(false);
  });

  test("a signal that is given to acquire stops the work, and gives nothing when it comes first", async () => {
    const { ann } = pair();
    await expect(ann.claims.acquire("a", { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    const control = new AbortController();
    const asked = ann.claims.acquire("a", { signal: control.signal });
    control.abort("changed my mind");
    await expect(asked).rejects.toBe("changed my mind");
    expect(ann.claims.inspect("a").state).toBe("free");
    const later = new AbortController();
    const { claim } = await ann.claims.acquire("a", { signal: later.signal });
    later.abort("stop");
    expect(claim?.signal.reason).toBe("stop");
    expect(await claim?.release()).toBe(true);
  });

  test("claims that are disposed give back what they hold, uncounted", async () => {
    const { ann, bob } = pair();
    const claim = await take(ann.claims, "a");
    await ann.claims.dispose();
    expect(claim.signal.reason).toMatchObject({ code: "bad_state" });
    await expect(ann.claims.acquire("b")).rejects.toMatchObject({ code: "bad_state" });
    await until(() => bob.claims.inspect("a").state === "free");
    expect((await take(bob.claims, "a")).attempt).toBe(1);
  });

  test("a holder stops when its log is closed, before others may take over", async () => {
    const { bob, clock, prefix } = pair();
    const cut = cutOff(one);
    const worker = openWorker(cut.log, { prefix, owner: "cut", clock, leaseMs: 30_000 });
    const claim = await take(worker.claims, "a");
    await until(() => bob.claims.inspect("a").state === "held");
    cut.close();
    for (let steps = 0; steps < 29 && !claim.signal.aborted; steps++) await clock.advance(1_000);
    expect(claim.signal.reason).toMatchObject({ code: "disconnected" });
    expect(bob.claims.inspect("a")).toMatchObject({ state: "held" });
    await clock.advance(30_000);
    expect((await take(bob.claims, "a")).attempt).toBe(2);
    await expect(worker.claims.acquire("b")).rejects.toMatchObject({ code: "disconnected" });
  });

  test("of two that stand by one has it; the other gets it when it is given up or when its holder falls silent", async () => {
    const { ann, bob, clock } = pair();
    const news: string[] = [];
    const standBy = (worker: { claims: Claims }) =>
      worker.claims.hold("runner:x", {
        onGained: (claim) => void news.push(`${claim.owner} gained`),
        onLost: (claim, reason) => void news.push(`${claim.owner} lost: ${reason.code}`),
        onError: (error) => news.push(String(error)),
      });
    const first = standBy(ann);
    await until(() => news.length === 1);
    const second = standBy(bob);
    await until(() => bob.claims.inspect("runner:x").state === "held");
    expect(second.claim).toBeUndefined();
    await first.dispose();
    expect(first.claim).toBeUndefined();
    await until(() => news.length === 3);
    expect(news).toEqual(["ann gained", "ann lost: bad_state", "bob gained"]);
    // Asked to step down, it lets the others go first.
    const third = standBy(ann);
    await until(() => ann.claims.inspect("runner:x").owner === "bob");
    expect(await ann.claims.requestCancel("runner:x")).toBe(true);
    await until(() => news.length === 5);
    expect(news.slice(3)).toEqual(["bob lost: cancelled", "ann gained"]);
    await clock.advance(10_000);
    await Promise.all([second.dispose(), third.dispose()]);
    await until(() => bob.claims.inspect("runner:x").state === "free");
  });

  test("a standby misses no moment at which the claim becomes free", async () => {
    const { ann, bob } = pair();
    for (let ticks = 0; ticks < 12; ticks++) {
      const id = `runner:${ticks}`;
      const claim = await take(ann.claims, id);
      await until(() => bob.claims.inspect(id).state === "held");
      let gained = false;
      const hold = bob.claims.hold(id, { onGained: () => void (gained = true) });
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      await claim.release();
      // Its time stands still: nothing but the change itself can wake it.
      await until(() => gained);
      expect(hold.claim).toMatchObject({ id, owner: "bob" });
      await hold.dispose();
    }
  });

  test("a standby takes over from a runner that crashed, as often as it takes", async () => {
    const { bob, clock, prefix } = pair();
    const dead = openWorker(one, { prefix, owner: "dan", clock: manualClock(), leaseMs: 30_000, maxAttempts: 1 });
    await take(dead.claims, "runner:x");
    await until(() => bob.claims.inspect("runner:x").state === "held");
    const gained: number[] = [];
    const hold = bob.claims.hold("runner:x", { onGained: (claim) => void gained.push(claim.attempt) });
    for (let steps = 0; steps < 100 && gained.length === 0; steps++) {
      await clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(gained).toEqual([1]);
    await hold.dispose();
  });
});

test("a collection that is not on a log cannot hold claims", () => {
  const collection = createCollection(localOnlyCollectionOptions<ClaimRecord, string>({ getKey: (row) => row.id }));
  expect(() => createClaims({ collection })).toThrowError(/cannot hold claims/);
});
