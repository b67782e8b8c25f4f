import {
  agentCollections,
  createAgent,
  durableAgent,
  durableStreamsWebhookAdapter,
  openLocalLog,
  rowsOf,
  logCollectionOptions,
} from "perdure/collections";
import { ensureWakeSubscription, newJob, tableQueueAdapter } from "perdure/collections/worker";
import type { DurableStreamsWakePayload, WebhookExecutionMode } from "perdure/collections";
import type { QueueJob } from "perdure/collections/worker";
import { createCollection } from "@tanstack/db";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { StreamServer, pause, startHook } from "../runner/desk.ts";
import { until } from "../../support/until.ts";
import { backends } from "../backends.ts";
import { replies, say, startPlace } from "./agent-session.ts";
import type { Place } from "./agent-session.ts";

describe("woken by webhooks of a Durable Streams server", () => {
  const server = new StreamServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  const modes: WebhookExecutionMode[] = [{ type: "request-bound" }, { type: "ack-immediate" }];

  test.each(modes)(
    "requirement: Durable Streams webhook integration: an agent that sleeps is woken by a message ($type)",
    async (mode) => {
      const stream = `sessions/${mode.type}`;
      const hook = await startHook();
      const log = await server.open(stream);
      const collections = agentCollections(log);
      const wakeAdapter = durableStreamsWebhookAdapter({
        jwksUrl: `${server.url}/v1/stream/__ds/jwks.json`,
        mode,
      });
      const adapter = scriptedText((call) => `re: ${call.userText}`);
      const works: Promise<unknown>[] = [];
      // A process that lives for one request.
      hook.handle = async (request) => {
        const agent = createAgent(
          durableAgent<DurableStreamsWakePayload>({
            name: "researcher",
            instructions: "Be brief.",
            adapter,
            streamUrl: `${server.url}/v1/stream/${stream}`,
            runtime: { wakeAdapter, drain: { maxDurationMs: 10_000 } },
          }),
        );
        const own: Promise<unknown>[] = [];
        const response = await agent.handleWake(request, { waitUntil: (work) => own.push(work) });
        works.push(Promise.all(own).then(() => agent.dispose()));
        return response;
      };
      onTestFinished(async () => {
        await Promise.all(works);
        await hook.stop();
      });
      await say(collections, "researcher", "before");
      await ensureWakeSubscription({
        baseUrl: server.url,
        id: `researcher-${mode.type}`,
        streams: [log.source],
        webhook: hook.url,
        leaseTtlMs: 30_000,
      });
      await replies(collections, "researcher", 1);
      await until(() => hook.deliveries.every(({ status }) => status !== undefined), "the answer to the hook");
      await Promise.all(works);
      const wakes = hook.deliveries.length;
      await say(collections, "researcher", "after");
      expect((await replies(collections, "researcher", 2)).map((row) => row.content)).toEqual([
        "re: before",
        "re: after",
      ]);
      await until(() => works.length > wakes, "the end of the wake");
      await Promise.all(works);
      await pause(100);
      // Its own writes do not wake it: one wake for one message.
      expect(hook.deliveries.length - wakes).toBe(1);
      expect(hook.deliveries.at(-1)?.status).toBe(mode.type === "request-bound" ? 200 : 202);
      expect(adapter.calls).toHaveLength(2);
    },
  );

  test("a request that is not the server's wakes nothing", async () => {
    const { agent, adapter } = webhookAgent();
    const answer = await agent.handleWake(new Request("http://agent/wake", { method: "POST", body: "{}" }));
    expect(answer.status).toBe(401);
    expect(adapter.calls).toHaveLength(0);
  });

  function webhookAgent() {
    const adapter = scriptedText(["never"]);
    const wakeAdapter = durableStreamsWebhookAdapter({ jwksUrl: `${server.url}/v1/stream/__ds/jwks.json` });
    const agent = createAgent(
      durableAgent<DurableStreamsWakePayload>({
        name: "sleeper",
        instructions: "",
        adapter,
        log: openLocalLog(),
        runtime: { wakeAdapter },
      }),
    );
    onTestFinished(() => agent.dispose());
    return { agent, adapter };
  }
});

describe.each(backends)("sleep and wake on $name", (backend) => {
  let place: Place;
  beforeAll(async () => {
    place = await startPlace(backend);
  });
  afterAll(() => place.stop());

  test("requirement: Agent sleep/wake: disposed and created again, it has its history and what came meanwhile", async () => {
    const wake = async (adapter: ReturnType<typeof scriptedText>) => {
      const { collections } = await place.open();
      return createAgent(durableAgent({ name: "sleeper", instructions: "Be brief.", adapter, collections }));
    };
    const page = await place.open();
    const first = await wake(scriptedText(["one"]));
    await say(page.collections, "sleeper", "first");
    await replies(page.collections, "sleeper", 1);
    await first.dispose();
    await say(page.collections, "sleeper", "second");
    const adapter = scriptedText(["two"]);
    const second = await wake(adapter);
    onTestFinished(() => second.dispose());
    expect((await replies(page.collections, "sleeper", 2))[1]?.content).toBe("two");
    expect(adapter.calls[0]?.messages.map((message) => message.content)).toEqual(["first", "one", "second"]);
  });

  test("a queue wakes it: it works only under the queue's lease", async () => {
    const { collections, log } = await place.open();
    const jobs = createCollection(logCollectionOptions<QueueJob>({ log, name: "jobs", getKey: (job) => job.id }));
    await jobs.preload();
    const adapter = scriptedText((call) => `re: ${call.userText}`);
    const agent = createAgent(
      durableAgent<{ id: string }>({
        name: "queued",
        instructions: "Be brief.",
        adapter,
        collections,
        runtime: { wakeAdapter: tableQueueAdapter({ collection: jobs }) },
      }),
    );
    onTestFinished(() => agent.dispose());
    await say(collections, "queued", "hello");
    await agent.ready;
    expect(adapter.calls).toHaveLength(0);
    await rowsOf(jobs).insert(newJob({ agent: "queued" }, "job-1"));
    expect(await agent.runWake({ id: "job-1" })).toEqual({ completed: true, cycles: 1 });
    expect((await replies(collections, "queued", 1))[0]?.content).toBe("re: hello");
    expect(rowsOf(jobs).get("job-1")?.status).toBe("done");
    await expect(agent.runWake({ id: "job-1" })).rejects.toMatchObject({ code: "fenced" });
  });
});
