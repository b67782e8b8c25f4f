// An answer that several sessions show is one message: what was said behind it was said to it as it was.
import type { UIMessage } from "ai";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { settle } from "../think/interleave-world.ts";
import { Facts } from "./branches-facts.ts";
import { World } from "./branches-world.ts";
import { digestAtOnce } from "../support/digest-at-once.ts";

beforeAll(digestAtOnce);

test("a fork does not go on with an answer that its source has gone on from", async () => {
  const setup = {
    policy: "queue",
    maxMessages: undefined,
    paceMs: 0,
    eager: 0,
    counted: false,
    approvalMs: 0,
  } as const;
  const world = new World(1, setup);
  onTestFinished(() => world.close());
  const [ann] = world.clients;
  world.connect(ann);
  await settle();
  const rest = async () => {
    for (let i = 0; i < 30; i++) {
      await settle();
      await world.clock.advance(50);
    }
    await world.wake();
  };
  const send = async (n: number) => {
    const message: UIMessage = { id: `m${n}`, role: "user", parts: [{ type: "text", text: `[u${n}v0] please` }] };
    ann.request(`r${n}`, [...ann.list, message], "submit-message");
    await rest();
  };
  await send(1);
  await world.call("forkSession", "main", { id: "fork" });
  await send(2);
  const before = new Facts(world).path("main")[1]?.body;
  void world.call("continueLastTurn", undefined, { session: "fork" });
  await rest();
  expect(new Facts(world).path("main")[1]?.body).toBe(before);
});
