// Small doors: each was open a hand's breadth.
import { Agent, AIChatAgent, type Identity } from "perdure";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "../host/open-host.ts";

const who = (request: Request) => ({ identity: { id: new URL(request.url).searchParams.get("as") ?? "anna" } });

class Child extends Agent {}

class Keeper extends Agent {
  static override subAgents = [Child];
  override mayOnlyRead(identity: Identity | undefined) {
    return identity?.id === "viewer";
  }
  override getCollections() {
    const readable = () => {
      throw new Error("SELECT secret FROM vault: no such table");
    };
    return { notes: { readable } };
  }
  override onBeforeSubAgent() {
    this.setState({ visits: 1 });
    return undefined;
  }
  state_() {
    return this.state;
  }
  send(id: string, text: string) {
    this.getConnection(id)?.send(text);
  }
}

test("onBeforeSubAgent() writes nothing for who may only read, who is told so", async () => {
  const host = await openHost({ agents: { Keeper, Child }, onBeforeRequest: who });
  const answer = await fetch(`${host.url}/agents/keeper/a/sub/child/b?as=viewer`);
  expect(answer.status).toBe(403);
  expect(await host.getAgentByName(Keeper, "a").state_()).toBeUndefined();
  await fetch(`${host.url}/agents/keeper/a/sub/child/b?as=anna`);
  expect(await host.getAgentByName(Keeper, "a").state_()).toEqual({ visits: 1 });
});

test("what readable() throws is for the log, and nobody else", async () => {
  const said: string[] = [];
  const log = ({ error }: { error: unknown }) => void said.push(`${String(error)} ${String((error as Error).cause)}`);
  const host = await openHost({ agents: { Keeper }, onBeforeConnect: who, log });
  const client = await connect(host, "/agents/keeper/a?as=anna");
  client.send(JSON.stringify({ type: "perdure_rows_subscribe", id: "s", since: { notes: 0 } }));
  const told = await client.frame(({ type }) => String(type).startsWith("perdure_rows"));
  expect(JSON.stringify(told)).not.toContain("secret");
  await eventually(() => said.join().includes("secret"), "the log");
});

test("an id that a client chose belongs to whom the first connection with it belongs", async () => {
  const host = await openHost({ agents: { Keeper }, onBeforeConnect: who });
  const anna = await connect(host, "/agents/keeper/a?as=anna&_pk=mine");
  const thief = await connect(host, "/agents/keeper/a?as=thief&_pk=mine");
  const agent = host.getAgentByName(Keeper, "a");
  await agent.send("mine", JSON.stringify({ type: "for anna" }));
  await anna.frame(({ type }) => type === "for anna");
  const tab = await connect(host, "/agents/keeper/a?as=anna&_pk=mine");
  await agent.send("mine", JSON.stringify({ type: "for the newest" }));
  await tab.frame(({ type }) => type === "for the newest");
  expect(JSON.stringify(thief.frames)).not.toContain("for ");
});

/** Somebody who may approve, until the verdict on that is there. */
class Desk extends AIChatAgent {
  static says: (value: unknown) => void = () => {};
  static revoked = false;
  override mayOnlyRead(identity: Identity | undefined) {
    return identity?.id === "anna" && Desk.revoked;
  }
  override authorizeApproval() {
    return new Promise<boolean>((resolve) => (Desk.says = resolve as (value: unknown) => void));
  }
  override onChatMessage(): undefined {}
  async ask() {
    const approval = { id: "q" };
    const part = { type: "tool-pay", toolCallId: "c", state: "approval-requested", input: {}, approval } as const;
    await this.persistMessages([
      { id: "u", role: "user", parts: [{ type: "text", text: "Pay." }] },
      { id: "a", role: "assistant", parts: [part] },
    ]);
  }
  open() {
    return this.hasPendingInteraction();
  }
}

test("a slow authorizeApproval() over HTTP: who may only read by then has not answered; no verdict is a mistake that is told", async () => {
  Desk.revoked = false;
  const said: string[] = [];
  const log = ({ error }: { error: unknown }) => void said.push(String(error));
  const host = await openHost({ agents: { Desk }, onBeforeRequest: who, log });
  const agent = host.getAgentByName(Desk, "x");
  await agent.ask();
  const approve = async (says: unknown, meanwhile = () => {}) => {
    Desk.says = () => {};
    const silent = Desk.says;
    const answer = fetch(`${host.url}/agents/desk/x/chat/tools/c?as=anna`, {
      method: "POST",
      body: JSON.stringify({ approved: true }),
      headers: { "content-type": "application/json" },
    });
    await eventually(() => Desk.says !== silent, "the question");
    meanwhile();
    Desk.says(says);
    return (await answer).status;
  };
  expect(await approve(true, () => (Desk.revoked = true))).toBe(403);
  expect(await agent.open()).toBe(true);
  Desk.revoked = false;
  expect(await approve("yes")).toBe(403);
  expect(await agent.open()).toBe(true);
  expect(await approve(true)).toBe(200);
  expect(await agent.open()).toBe(false);
  expect(said.join()).toContain("authorizeApproval returned string, not true or false");
});
