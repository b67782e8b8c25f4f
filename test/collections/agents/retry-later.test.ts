import { createCollection } from "@tanstack/db";
import {
  agentCollections,
  createAgent,
  createClaims,
  durableAgent,
  logCollectionOptions,
  rowsOf,
} from "perdure/collections";
import type { Agent, AgentCollections, ClaimRecord, DurableAgentOptions } from "perdure/collections";
import { manualClock, scriptedText } from "perdure/testing";
import type { ManualClock } from "perdure/testing";
import { describe, expect, test, vi } from "vitest";
import { backends } from "../backends.ts";
import { replies, say } from "./agent-session.ts";

const DAY_MS = 86_400_000;

/** An agent whose first try fails, and whose second one may come in 25 days: later than a timer can hold. */
function patient(
  collections: AgentCollections,
  clock: ManualClock | undefined,
  more: Partial<DurableAgentOptions> = {},
) {
  const asked = { times: 0 };
  const agent = createAgent(
    durableAgent({
      ...{ name: "patient", instructions: "", onFailure: () => {}, exclusive: false },
      ...{ retry: { maxAttempts: 3, delayMs: 25 * DAY_MS, maxDelayMs: 25 * DAY_MS } },
      ...(clock === undefined ? {} : { clock }),
      adapter: scriptedText((call) => {
        if (asked.times++ === 0) throw new Error("The model's server is down for a month.");
        return `re ${call.userText}`;
      }),
      ...(more as object),
      collections,
    } as DurableAgentOptions),
  );
  return { agent, asked };
}

const failedOnce = (agent: Agent<AgentCollections>, asked: { times: number }) =>
  vi.waitFor(() => expect([asked.times, agent.state]).toEqual([1, "idle"]));

describe.each(backends)("an agent on $name", (backend) => {
  test("tries again in 25 days, not at once; a process that dies meanwhile leaves the message to the next", async () => {
    const place = await backend.start();
    try {
      const clock = manualClock();
      const first = agentCollections(await place.open());
      const { agent, asked } = patient(first, clock);
      await agent.ready;
      await say(first, "patient", "hello");
      await failedOnce(agent, asked);
      await clock.advance(25 * DAY_MS - 1);
      expect(asked.times).toBe(1);
      await clock.advance(1);
      await replies(first, "patient", 1);
      expect(asked.times).toBe(2);
      // The second message fails like the first one; then its process is gone, and another one need not wait.
      asked.times = 0;
      await say(first, "patient", "again");
      await failedOnce(agent, asked);
      await agent.dispose();
      expect(clock.pending()).toBe(0);
      const second = agentCollections(await place.open());
      const next = patient(second, manualClock());
      next.asked.times = 1;
      await replies(second, "patient", 2);
      await next.agent.dispose();
    } finally {
      await place.stop();
    }
  });
});

test("in real time too: a wait of 25 days does not end at once", async () => {
  const place = await backends[0]!.start();
  const collections = agentCollections(await place.open());
  const { agent, asked } = patient(collections, undefined);
  await agent.ready;
  await say(collections, "patient", "hello");
  await failedOnce(agent, asked);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(asked.times).toBe(1);
  await agent.dispose();
  await place.stop();
});

test("an `onFailure` that throws ends nothing: the agent goes on, and the console has it", async () => {
  const told = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const place = await backends[0]!.start();
    const collections = agentCollections(await place.open());
    const onFailure = () => {
      throw new Error("onFailure");
    };
    const { agent } = patient(collections, undefined, { onFailure, retry: { maxAttempts: 3, delayMs: 1 } });
    await agent.ready;
    await say(collections, "patient", "hello");
    await replies(collections, "patient", 1);
    expect(told).toHaveBeenCalled();
    await agent.dispose();
    await place.stop();
  } finally {
    told.mockRestore();
  }
});

test("listeners of claims that throw, also when a claim is lost, stop neither others nor the process", async () => {
  const told = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const place = await backends[0]!.start();
    const log = await place.open();
    const collection = createCollection(
      logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id }),
    );
    const clock = manualClock();
    const onLost = vi.fn<() => void>(() => {
      throw new Error("onLost");
    });
    const claims = createClaims({ collection, owner: "ann", clock, onLost });
    const heard = vi.fn<() => void>();
    claims.subscribe(() => {
      throw new Error("listener");
    });
    claims.subscribe(heard);
    const { claim } = await claims.acquire("work");
    expect(heard).toHaveBeenCalled();
    // Somebody else's life of the same owner takes over.
    const other = createClaims({ collection, owner: "ann", clock });
    await other.acquire("work");
    expect(claim?.signal.aborted).toBe(true);
    expect(onLost).toHaveBeenCalledOnce();
    expect(told).toHaveBeenCalled();
    expect(rowsOf(collection).get("work")).toMatchObject({ owner: "ann" });
    await Promise.all([claims.dispose(), other.dispose()]);
    await place.stop();
  } finally {
    told.mockRestore();
  }
});
