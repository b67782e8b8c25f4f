import { Agent, callable, getCurrentAgent, type Identity } from "perdure";
import { MAX_IDENTITY_BYTES } from "perdure/host";
import { type BeforeHook, memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost, tempDir } from "./open-host.ts";

const ANNA: Identity = { id: "u1", name: "Anna", roles: ["admin"], org: { id: 7, plan: null } };

/** Who somebody is stands in a header, as a gateway in front would write it. */
const byHeader: BeforeHook = (request) => {
  const user = request.headers.get("x-user");
  return user === null ? undefined : { identity: JSON.parse(user) as Identity };
};
const as = (identity: unknown) => ({ headers: { "x-user": JSON.stringify(identity) } });

/** Whom queued work was done for. */
const queuedFor: unknown[] = [];

class Door extends Agent {
  static {
    callable(this, "who");
    callable(this, "plan");
  }
  async who() {
    await Promise.resolve();
    const { identity, connection } = getCurrentAgent();
    return { current: identity ?? null, connection: connection?.identity ?? null };
  }
  async plan() {
    await this.queue("later");
  }
  later() {
    queuedFor.push(getCurrentAgent().identity ?? null);
  }
  override async onRequest() {
    return Response.json(await this.who());
  }
}

class House extends Door {
  static override readonly subAgents = ["Door"];
  override onBeforeSubAgent() {
    const { identity } = getCurrentAgent();
    if (identity?.id === "u1") return { identity: { id: `guest of ${identity.id}` } };
    return undefined;
  }
}

const open = (hook: BeforeHook = byHeader) =>
  openHost({ agents: { Door, House }, storage: memoryStorage(), onBeforeConnect: hook, onBeforeRequest: hook });

test("who a hook says it is is known to the connection, to methods that are called on it, and to requests", async () => {
  const host = await open();
  const client = await connect(host, "/agents/door/one", as(ANNA));
  expect(await client.call("who")).toEqual({ current: ANNA, connection: ANNA });
  const answer = await fetch(`${host.url}/agents/door/one`, as(ANNA));
  expect(await answer.json()).toEqual({ current: ANNA, connection: null });
});

test("whom no hook has named is nobody, whatever it says of itself", async () => {
  const host = await open();
  const client = await connect(host, `/agents/door/one?identity=${JSON.stringify(ANNA)}&_pk=anna`);
  expect(await client.call("who")).toEqual({ current: null, connection: null });
  const forged = JSON.stringify({ identity: ANNA });
  const answer = await fetch(`${host.url}/agents/door/one`, { method: "POST", body: forged });
  expect(await answer.json()).toEqual({ current: null, connection: null });
});

test("a hook may say who it is and replace the request in one", async () => {
  const host = await open((request) => ({
    identity: ANNA,
    request: new Request(request, { headers: { "x-seen": "yes" } }),
  }));
  const answer = await fetch(`${host.url}/agents/door/one`);
  expect(await answer.json()).toEqual({ current: ANNA, connection: null });
});

test("the identity stays with the socket while its agent leaves memory", async () => {
  const host = await openHost({ agents: { Door }, dir: tempDir(), idleMs: 1, onBeforeConnect: byHeader });
  let evicted = 0;
  onTestFinished(subscribe("agent:evicted", () => void evicted++));
  const client = await connect(host, "/agents/door/one", as(ANNA));
  await eventually(() => evicted > 0, "the end of the first life");
  expect(await client.call("who")).toEqual({ current: ANNA, connection: ANNA });
});

test("nobody can change who somebody is: it is frozen, all the way down", async () => {
  class Spy extends Door {
    override async onRequest() {
      const { identity } = getCurrentAgent();
      return Response.json([identity, identity?.roles, identity?.org].map((part) => Object.isFrozen(part)));
    }
  }
  const host = await openHost({ agents: { Spy }, storage: memoryStorage(), onBeforeRequest: byHeader });
  expect(await (await fetch(`${host.url}/agents/spy/one`, as(ANNA))).json()).toEqual([true, true, true]);
});

test("queued work is done for nobody, also when somebody has asked for it: it may run after a restart", async () => {
  const host = await open();
  const client = await connect(host, "/agents/door/one", as(ANNA));
  await client.call("plan");
  await eventually(() => queuedFor.length > 0, "the queue");
  expect(queuedFor).toEqual([null]);
});

test("a parent may say who somebody is for its children; else they know what it knows", async () => {
  const host = await open();
  const anna = await connect(host, "/agents/house/one/sub/door/kitchen", as(ANNA));
  expect(await anna.call("who")).toMatchObject({ current: { id: "guest of u1" } });
  const ben = await connect(host, "/agents/house/one/sub/door/kitchen", as({ id: "u2" }));
  expect(await ben.call("who")).toMatchObject({ current: { id: "u2" } });
  const answer = await fetch(`${host.url}/agents/house/one/sub/door/kitchen`, as(ANNA));
  expect(await answer.json()).toMatchObject({ current: { id: "guest of u1" } });
});

const cycle: Record<string, unknown> = { id: "u1" };
cycle.self = cycle;

test.each([
  ["no object", "anna"],
  ["nothing", undefined],
  ["a list", [ANNA]],
  ["no id", { name: "Anna" }],
  ["an empty id", { id: "" }],
  ["an id that is no text", { id: 7 }],
  ["a name that is no text", { id: "u1", name: 7 }],
  ["a claim that JSON would change", { id: "u1", since: new Date(0) }],
  ["a claim that JSON would drop", { id: "u1", deep: { may: () => true } }],
  ["a number that JSON cannot hold", { id: "u1", age: Number.NaN }],
  ["a cycle", cycle],
  ["too much", { id: "u1", more: "x".repeat(MAX_IDENTITY_BYTES) }],
])("an identity that is %s lets nobody in, and the log says why", async (_, identity) => {
  const failures: string[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => void failures.push(`${payload.stage} ${payload.error}`)));
  const host = await open(() => ({ identity }) as never);
  expect((await fetch(`${host.url}/agents/door/one`)).status).toBe(500);
  expect(failures).toHaveLength(1);
  expect(failures[0]).toMatch(/^onBeforeRequest The identity of onBeforeRequest /);
});

test.each([
  ["an object of another shape", { user: ANNA }],
  ["an identity with something beside it", { identity: ANNA, admin: true }],
  ["a request that is none", { identity: ANNA, request: "https://host.test" }],
  ["true", true],
])("a hook that returns %s lets nobody in", async (_, verdict) => {
  const host = await open(() => verdict as never);
  expect((await fetch(`${host.url}/agents/door/one`)).status).toBe(500);
  await expect(connect(host, "/agents/door/one")).rejects.toThrow();
});
