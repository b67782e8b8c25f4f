import { agentFetch } from "agents/client";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { addressOf, asleep, connect, connected, eventually, startHost, takeFailures } from "./harness.ts";

let broken = false;
let starts = 0;
/** Of the agents that did not live to keep it. */
const errors: unknown[] = [];

class Starter extends Base<Count> {
  override initialState: Count = { count: 0 };

  override onStart(): void {
    starts++;
    if (broken) throw new Error("the secret is out");
  }
  override onError(error: unknown): void {
    errors.push(error);
  }
  override onRequest(): Response {
    return new Response("fine");
  }
}

const to = { agent: "Starter", name: "x" };

test("an agent that cannot start: requests get 500 without details, clients try again until it can", async () => {
  broken = true;
  const host = await startHost({ agents: { Starter } });
  const response = await agentFetch({ host: addressOf(host), ...to });
  expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  expect(errors.map(String)).toEqual(["Error: the secret is out"]);
  const test = connect(host, to);
  await eventually(() => expect(test.closes.length).toBeGreaterThan(1));
  expect(test.closes[0]).toEqual({ code: 1011, reason: "setup failed" });
  expect(test.frames).toEqual([]);
  broken = false;
  await eventually(() => expect(test.client.identified).toBe(true));
  expect(await test.client.call("ping")).toBe("pong");
  expect(takeFailures()).toContain("Starter/x connect: the secret is out");
});

test("an agent that cannot start again while its sockets are open costs the frame and the socket, not more", async () => {
  broken = false;
  const host = await startHost({ agents: { Starter }, idleMs: 20 });
  const test = await connected<Count>(host, to);
  await asleep(host);
  broken = true;
  const lost = expect(test.client.call("ping")).rejects.toThrow("Connection closed");
  await lost;
  broken = false;
  await eventually(() => expect(test.client.identified).toBe(true));
  expect(await test.client.call("ping")).toBe("pong");
  expect(takeFailures().length).toBeGreaterThan(0);
});

test("many who come at once share one start", async () => {
  broken = false;
  starts = 0;
  const host = await startHost({ agents: { Starter } });
  const tests = Array.from({ length: 20 }, () => connect(host, to));
  await Promise.all([...tests.map(({ client }) => client.ready), agentFetch({ host: addressOf(host), ...to })]);
  expect(starts).toBe(1);
});
