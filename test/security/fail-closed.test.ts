import { type Act, type ActTarget, Agent, AIChatAgent, callable, type Identity, PerdureError } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHost } from "../host/open-host.ts";

/** What a hook may return by mistake, in JavaScript and in haste. */
const MISTAKES: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  "the number 1": () => 1,
  "a text": () => "yes",
  "an object": () => ({ allowed: true }),
  "a function": () => () => true,
};
const LATE: Readonly<Record<string, () => unknown>> = {
  "a promise of true": () => Promise.resolve(true),
  "a promise of false": () => Promise.resolve(false),
  "a promise that rejects": () => Promise.reject(new Error("late")),
};
const LATER: Readonly<Record<string, () => unknown>> = {
  "a promise of nothing": () => Promise.resolve(undefined),
  "a promise of a text": () => Promise.resolve("yes"),
  "a promise that rejects": () => Promise.reject(new Error("broken")),
  "a throw": () => {
    throw new Error("broken");
  },
};

/** What the operator was told. */
function watch() {
  const told: string[] = [];
  const refused: string[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => void told.push(payload.stage)));
  onTestFinished(subscribe("act:refused", ({ payload }) => void refused.push(payload.act)));
  return { told, refused };
}

let answer: () => unknown = () => true;

class Guarded extends Agent {
  static override options = { allowClientState: true };
  static {
    callable(this, "look");
  }
  override initialState = { by: "nobody" };
  readonly errors: unknown[] = [];
  look(): string {
    return "seen";
  }
  override authorize(_identity: Identity | undefined, act: Act, on: ActTarget): boolean {
    return act === "call" && on.method === "look" ? (answer() as boolean) : true;
  }
  override onError(error: unknown): void {
    this.errors.push(error);
  }
}

test.each(Object.entries({ ...MISTAKES, ...LATER }))("`authorize` that gives %s allows nothing", async (_, given) => {
  answer = given;
  const { told, refused } = watch();
  const host = await openHost({ agents: { Guarded }, log: false });
  const client = await connect(host, "/agents/guarded/one");
  await expect(client.call("look")).rejects.toThrow(/is not allowed here|Something went wrong/);
  expect([told, refused]).toEqual([["authorize()"], ["call"]]);
  answer = () => Promise.resolve(true);
  expect(await client.call("look")).toBe("seen");
  answer = () => false;
  await expect(client.call("look")).rejects.toThrow('"call" is not allowed here.');
  // A no is no mistake.
  expect([told, refused]).toEqual([["authorize()"], ["call", "call"]]);
});

test("`authorize` that throws an error of ours refuses in its words", async () => {
  answer = () => {
    throw new PerdureError("not_allowed", "Your plan does not have this.");
  };
  const { told } = watch();
  const host = await openHost({ agents: { Guarded } });
  const client = await connect(host, "/agents/guarded/one");
  await expect(client.call("look")).rejects.toThrow("Your plan does not have this.");
  expect(told).toEqual([]);
});

class Marked extends Guarded {
  override authorize(): boolean {
    return true;
  }
  override shouldConnectionBeReadonly(): boolean {
    return answer() as boolean;
  }
}

class MarkedByWho extends Guarded {
  override authorize(): boolean {
    return true;
  }
  override mayOnlyRead(): boolean {
    return answer() as boolean;
  }
}

test.each(
  [Marked, MarkedByWho].flatMap((cls) => Object.entries({ ...MISTAKES, ...LATE }).map((one) => [cls, ...one] as const)),
)("%o that gives %s lets nobody write", async (Doc, _, given) => {
  answer = given;
  const { told } = watch();
  const host = await openHost({ agents: { Doc }, log: false });
  const client = await connect(host, "/agents/doc/one");
  client.send(JSON.stringify({ type: "cf_agent_state", state: { by: "me" } }));
  const { error } = await client.frame(({ type }) => type === "cf_agent_state_error");
  expect(error).toBe("Connection is readonly");
  expect(await client.call("look")).toBe("seen");
  expect(told).toEqual([Doc === Marked ? "shouldConnectionBeReadonly()" : "mayOnlyRead()"]);
});

class Quiet extends Guarded {
  override authorize(): boolean {
    return true;
  }
  override shouldSendProtocolMessages(): boolean {
    return answer() as boolean;
  }
}

test.each(Object.entries({ ...MISTAKES, ...LATE }))(
  "`shouldSendProtocolMessages` that gives %s sends none",
  async (_, given) => {
    answer = given;
    const { told } = watch();
    const host = await openHost({ agents: { Quiet }, log: false });
    const client = await connect(host, "/agents/quiet/one", { greeted: false });
    expect(await client.call("look")).toBe("seen");
    expect(client.states()).toEqual([]);
    expect(told).toEqual(["shouldSendProtocolMessages()"]);
  },
);

class Talk extends AIChatAgent {
  override onChatMessage(): Response {
    return new Response("hello");
  }
  override allowSessionOp(): boolean {
    return answer() as boolean;
  }
  override onError(): void {}
}

test.each(Object.entries({ ...MISTAKES, ...LATER }))(
  "`allowSessionOp` that gives %s allows nothing",
  async (_, given) => {
    answer = given;
    const host = await openHost({ agents: { Talk }, log: false });
    const client = await connect(host, "/agents/talk/one");
    client.send(JSON.stringify({ type: "perdure_session", id: "q", op: "create", name: "mine" }));
    const result = await client.frame(({ type }) => type === "perdure_session_result");
    expect(result).toMatchObject({ error: { code: expect.stringMatching(/not_allowed|call_failed/) } });
    expect((await fetch(`${host.url}/agents/talk/one/chat?_session=main`)).ok).toBe(false);
    const closed = await connect(host, "/agents/talk/one?_session=main", { greeted: false });
    expect(await closed.whenClosed()).toMatchObject({ code: 4403 });
    answer = () => Promise.resolve(true);
    expect((await fetch(`${host.url}/agents/talk/one/chat?_session=main`)).status).toBe(200);
  },
);

class Parent extends Agent {
  static override readonly subAgents = ["Child"];
  static {
    callable(this, "children");
  }
  override authorize(_identity: Identity | undefined, act: Act, on: ActTarget): boolean {
    return act !== "child.reach" || on.child?.name !== "locked";
  }
  override mayOnlyRead(identity: Identity | undefined): boolean {
    return identity?.id === "viewer";
  }
  children(): number {
    return this.listSubAgents().length;
  }
}

class Child extends Agent {
  override onRequest(): Response {
    this.sql`CREATE TABLE IF NOT EXISTS seen (x)`;
    return new Response("in");
  }
  override mayOnlyRead(identity: Identity | undefined): boolean {
    return identity?.id === "viewer";
  }
}

test("a child is reached through its parent's `authorize`, and a viewer leaves nothing in either", async () => {
  const identityOf = (request: Request) => ({ identity: { id: new URL(request.url).searchParams.get("as") ?? "me" } });
  const hooks = { onBeforeRequest: identityOf, onBeforeConnect: identityOf };
  const host = await openHost({ agents: { Parent }, subAgents: { Child }, log: false, ...hooks });
  const child = (name: string, as: string) => fetch(`${host.url}/agents/parent/one/sub/child/${name}?as=${as}`);
  expect((await child("locked", "me")).status).toBe(403);
  const closed = await connect(host, "/agents/parent/one/sub/child/locked", { greeted: false });
  expect(await closed.whenClosed()).toMatchObject({ code: 4403 });
  expect((await child("open", "viewer")).status).toBe(403);
  const parent = await connect(host, "/agents/parent/one");
  expect(await parent.call("children")).toBe(0);
  expect((await child("open", "me")).status).toBe(200);
});
