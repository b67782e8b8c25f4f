// What a client says about messages, calls and places of another session than its own changes nothing there.
import type { UIMessage } from "ai";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { settle } from "../think/interleave-world.ts";
import type { Client } from "./branches-client.ts";
import { Facts } from "./branches-facts.ts";
import { type Setup, World } from "./branches-world.ts";
import { digestAtOnce } from "../support/digest-at-once.ts";

beforeAll(digestAtOnce);

const PLAIN: Setup = {
  ...{ policy: "queue", maxMessages: undefined, paceMs: 0, eager: 0, counted: true, approvalMs: 0 },
};

/** Two sessions, `main` and `other`, with a client in each. */
async function open(setup: Partial<Setup> = {}) {
  const world = new World(1, { ...PLAIN, ...setup });
  onTestFinished(() => world.close());
  const [ann, bob] = world.clients;
  await world.call("createSession", { id: "other" });
  bob.named = "other";
  world.connect(ann);
  world.connect(bob);
  await settle();
  let asked = 0;
  const rest = async () => {
    for (let i = 0; i < 20; i++) {
      await settle();
      await world.clock.advance(50);
    }
    await world.wake();
  };
  return {
    ...{ world, ann, bob, rest },
    shown: (session: string) => new Facts(world).path(session).map(({ key }) => key),
    async say(client: Client, id: string): Promise<void> {
      client.request(`r${id}`, [...client.list, user(`m${id}`, `u${id}v0`)], "submit-message");
      await rest();
    },
    async ask(client: Client, op: object) {
      const id = `q${++asked}`;
      client.send({ type: "perdure_session", id, ...op });
      await settle();
      return client.answers.get(id);
    },
  };
}

function user(id: string, key: string): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text: `[${key}] please` }] };
}

test("a message of another session cannot be edited", async () => {
  const { bob, ann, say, shown, rest } = await open();
  await say(ann, "1");
  await say(bob, "2");
  bob.request("r3", [user("m1", "u1v1")], "submit-message");
  await rest();
  // It is turned away, and given what its own session shows.
  expect(bob.log.at(-1)).toContain(`"outcome":"skipped"`);
  expect(bob.log.at(-2)).toContain("u2v0");
  bob.send({ type: "cf_agent_chat_messages", messages: [user("m1", "u1v2")] });
  await rest();
  expect(shown("main")).toEqual(["u1v0", "a:r1"]);
  expect(shown("other")).toEqual(["u2v0", "a:r2"]);
});

test("a list of another session, with a new message: only that is said", async () => {
  const { bob, ann, say, shown, rest } = await open();
  await say(ann, "1");
  bob.request("r2", [...ann.list, user("m2", "u2v0")], "submit-message");
  await rest();
  expect(shown("main")).toEqual(["u1v0", "a:r1"]);
  expect(shown("other")).toEqual(["u2v0", "a:r2"]);
});

test("branches, forks and pins are of messages of one's own session", async () => {
  const { bob, ann, say, ask, world, shown } = await open();
  await say(ann, "1");
  for (const op of ["switchBranch", "pin", "unpin", "branches"])
    expect(await ask(bob, { op, messageId: "m1" }), op).toMatchObject({ error: { code: "not_found" } });
  expect(await ask(bob, { op: "switchBranch", messageId: "m1", own: false })).toMatchObject({
    error: { code: "not_found" },
  });
  expect(await ask(bob, { op: "fork", at: "m1" })).toMatchObject({ error: { code: "not_found" } });
  expect(shown("other")).toEqual([]);
  expect([...new Facts(world).sessions.keys()]).toEqual(["main", "other"]);
});

test("older messages are of one's own session, also where nothing was said yet", async () => {
  const { bob, ann, say, world } = await open();
  await say(bob, "1");
  await say(bob, "2");
  const last = new Facts(world).path("other").at(-1)?.seq ?? 0;
  ann.send({ type: "perdure_chat_older", before: last });
  await settle();
  expect(ann.log.at(-1)).toBe(`< {"type":"perdure_chat_older","before":${last},"messages":[]}`);
});

test("calls of the same id in two sessions: each is answered in its own", async () => {
  const { bob, ann, say, world, rest } = await open({ eager: 100 });
  const stateIn = (session: string) => /"state":"(approval-[a-z]+|output-[a-z]+)"/.exec(bodyOf(session))?.[1];
  const bodyOf = (session: string) => new Facts(world).path(session).at(-1)?.body ?? "";
  // What an answer asks for depends on the name of its request.
  for (let n = 1; n < 20 && stateIn("main") !== "approval-requested"; n++) await say(ann, `${n}`);
  for (let n = 20; n < 40 && stateIn("other") !== "approval-requested"; n++) await say(bob, `${n}`);
  expect([stateIn("main"), stateIn("other")]).toEqual(["approval-requested", "approval-requested"]);
  world.calm = true;
  // The model calls both `call_0`; here each has an id of its own.
  const idIn = (session: string) =>
    /"toolCallId":"([^"]+)"[^{}]*"state":"approval-requested"/.exec(bodyOf(session))?.[1];
  const [first, second] = [idIn("main"), idIn("other")];
  expect(new Set([first, second]).size).toBe(2);
  bob.send({ type: "cf_agent_tool_approval", toolCallId: first, approved: false, autoContinue: false });
  await rest();
  expect(stateIn("main")).toBe("approval-requested");
  bob.send({ type: "cf_agent_tool_approval", toolCallId: second, approved: false, autoContinue: false });
  await rest();
  expect(stateIn("main")).toBe("approval-requested");
  expect(stateIn("other")).not.toBe("approval-requested");
});

test("a view with a turn under way is not closed, and one that is closed leaves nothing", async () => {
  const { ann, say, ask, world, rest } = await open({ paceMs: 40 });
  await say(ann, "1");
  const view = (await world.call("openView", "main")) as string;
  await ask(ann, { op: "attach", session: view });
  ann.request("r2", [...ann.list, user("m2", "u2v0")], "submit-message");
  await settle();
  expect(await world.call("closeView", view)).toMatchObject({ code: "bad_state" });
  await rest();
  expect(world.rows("SELECT id FROM perdure_turn WHERE session = ?", view)).toHaveLength(1);
  expect(await world.call("closeView", view)).toBe(true);
  await world.wake();
  expect(world.rows("SELECT id FROM perdure_turn WHERE session = ?", view)).toEqual([]);
  expect([...new Facts(world).sessions.keys()]).toEqual(["main", "other"]);
  expect(new Facts(world).byKey.has("u2v0")).toBe(true);
});

test("a limit deletes nothing that a fork shows, also one that was made since the limit was looked at", async () => {
  const { ann, say, world, shown } = await open({ maxMessages: 4 });
  for (const id of ["1", "2", "3"]) await say(ann, id);
  await world.call("forkSession", "main", { id: "fork" });
  await world.wake();
  const before = shown("fork");
  for (const id of ["4", "5", "6"]) await say(ann, id);
  expect(shown("fork")).toEqual(before);
  expect(shown("main")).toEqual(["u5v0", "a:r5", "u6v0", "a:r6"]);
});
