// What a limit, a branch that was left and a view have to do with each other.
import type { UIMessage } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { settle } from "../think/interleave-world.ts";
import { Facts } from "./branches-facts.ts";
import { type ModelCall, World } from "./branches-world.ts";

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
  send(2);
  await rest();
  const before = [...ann.list];
  ann.request("r3", before.slice(0, 3), "regenerate-message");
  await rest();
  const again = [...ann.list];
  await world.call("switchBranch", before[3]?.id ?? "");
  await rest();
  expect(shown()).toEqual(["u1v0", "a:r1", "u2v0", "a:r2"]);
  // As sent by who has not heard of it yet: what it wants to have answered stands before an answer of the other branch.
  send(4, again);
  await rest();
  await world.call("switchBranch", again[3]?.id ?? "");
  ann.request(
    "r5",
    [...again.slice(0, 3), ...before.slice(3, 4), { id: "m4", role: "user", parts: [] }],
    "regenerate-message",
  );
  await rest();
  expect(shown()).toEqual(["u1v0", "a:r1", "u2v0", "a:r2", "u4v0", "a:r5"]);
  expect(JSON.stringify(calls.at(-1)?.prompt)).not.toContain("[a:r3]");
});
