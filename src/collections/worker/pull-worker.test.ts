import { expect, test } from "vitest";
import { pullWakeAdapter } from "./pull-worker.ts";

const CREATED_AT = "2026-01-01T00:00:00.000Z";
const WAKE = { subscription_id: "s" };

/** A server that gives wakes away as it is told to, and says which of its routes were called. */
function server(generations: number[]) {
  const called: string[] = [];
  const answer = (path: string) => {
    if (path === "s") return { created_at: CREATED_AT, lease_ttl_ms: 1_000 };
    if (path !== "claim") return {};
    const generation = generations.shift();
    return { wake_id: `w${generation}`, generation, token: "t", lease_ttl_ms: 1_000, streams: [] };
  };
  const fetch: typeof globalThis.fetch = async (input) => {
    const path = String(input).split("/").at(-1) ?? "";
    called.push(path);
    return Response.json(answer(path));
  };
  const adapter = pullWakeAdapter({ baseUrl: "http://server", subscriptionId: "s", worker: "me", fetch });
  const claim = async () => {
    const { fenceToken } = await adapter.claimWake(WAKE, { signal: new AbortController().signal });
    return { wake: WAKE, fenceToken: fenceToken ?? "" };
  };
  return { adapter, claim, called };
}

test("a wake that was lost without a word is forgotten with the next claim", async () => {
  const { adapter, claim, called } = server([1, 2]);
  const lost = await claim();
  await adapter.heartbeat?.(lost);
  const next = await claim();
  const before = called.length;
  await expect(adapter.heartbeat?.(lost)).rejects.toMatchObject({ code: "fenced" });
  await expect(adapter.complete?.(lost, { done: true })).rejects.toMatchObject({ code: "fenced" });
  await adapter.fail?.(lost, new Error("late"));
  expect(called).toHaveLength(before);
  await adapter.heartbeat?.(next);
  await adapter.complete?.(next, { done: true });
  expect(called.slice(before)).toEqual(["ack", "ack"]);
});
