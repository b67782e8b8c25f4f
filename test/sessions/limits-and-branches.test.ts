// What a limit, a branch that was left and a view have to do with each other.
import type { UIMessage } from "ai";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { settle } from "../think/interleave-world.ts";
import { Facts } from "./branches-facts.ts";
import { type ModelCall, World } from "./branches-world.ts";
import { digestAtOnce } from "../support/digest-at-once.ts";

beforeAll(digestAtOnce);

const PLAIN = { policy: "queue", maxMessages: undefined, paceMs: 0, eager: 0, counted: false, approvalMs: 0 } as const;

async function open(setup: { readonly maxMessages?: number; readonly paceMs?: number }) {
  const world = new World(1, { ...PLAIN, ...setup });
  onTestFinished(() => world.close());
  const calls: ModelCall[] = [];
  world.called = (call) => void calls.push(call);
  const [ann] = world.clients;
  world.connect(ann);
  await settle();
  return {
    ...{ world, ann, calls },
    shown: () => new Facts(world).path("main").map(({ key }) => key),
    send(n: number, list: readonly UIMessage[] = ann.list): void {
      const message: UIMessage = { id: `m${n}`, role: "user", parts: [{ type: "text", text: `[u${n}v0] please` }] };
      ann.request(`r${n}`, [...list, message], "submit-message");
    },
    async rest(): Promise<void> {
      for (let i = 0; i < 30; i++) {
        await settle();
        await world.clock.advance(50);
      }
      await world.wake();
    },
  };
}

test("a limit does not cut off the question that is being answered, also if a view shows it", async () => {
  const { world, send, shown, rest } = await open({ maxMessages: 2, paceMs: 1_000 });
  send(1);
  await settle();
  await world.call("openView", "main");
  send(2);
  send(3);
  await settle();
  await world.wake();
  expect(shown()).toEqual(["u1v0", "u2v0", "u3v0"]);
  for (let i = 0; i < 10; i++) await rest();
  expect(shown()).toEqual(["u3v0", "a:r3"]);
});

test("another answer is asked for on a branch that the session has left: it goes on there", async () => {
  const { world, ann, send, shown, rest, calls } = await open({});
  send(1);
  await rest();
  const first = [...ann.list];
  ann.request("r2", first.slice(0, 1), "regenerate-message");
  await rest();
  send(3);
  await rest();
  const left = [...ann.list];
  await world.call("switchBranch", first[1]?.id ?? "");
  await rest();
  expect(shown()).toEqual(["u1v0", "a:r1"]);
  // By who has not heard of it yet.
  ann.request("r4", left.slice(0, 3), "regenerate-message");
  await rest();
  expect(shown()).toEqual(["u1v0", "a:r2", "u3v0", "a:r4"]);
  expect(JSON.stringify(calls.at(-1)?.prompt)).not.toContain("[a:r1]");
});
