// Which children clients reach: those that the agent has made, and those of classes that it declares.
import { Agent, agent as declareAgent, type AgentEnv, callable, type ChildClass } from "perdure";
import { type AddressedAgent, getSubAgentByName, memoryStorage, type ServedHost, subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHost } from "./open-host.ts";

class Noted extends Agent<AgentEnv, string> {
  static override readonly subAgents: readonly ChildClass[] = [];
  static {
    callable(this, "keep");
  }
  override initialState = "";
  override onRequest(): Response {
    return new Response(this.selfPath.map(({ className, name }) => `${className}:${name}`).join(" "));
  }
  keep(): string {
    this.setState("kept");
    return this.name;
  }
  listed(): string[] {
    return this.listSubAgents().map(({ className, name }) => `${className}:${name}`);
  }
  async make(name: string): Promise<void> {
    await this.subAgent(Admin, name);
  }
}

class Admin extends Noted {}
class Clerk extends Noted {}
class Pub extends Noted {
  static override readonly subAgents: readonly ChildClass[] = [Clerk];
}

const refuseAdmins = (_request: Request, { className }: { className: string }) =>
  className === "Admin" ? new Response("not for you", { status: 403 }) : undefined;

const open = () =>
  openHost({
    agents: { Pub, Admin },
    subAgents: { Clerk },
    storage: memoryStorage(),
    onBeforeConnect: refuseAdmins,
    onBeforeRequest: refuseAdmins,
  });

/** What a request and a socket to this path get: the path of the agent that was reached, or the status. */
async function reach(host: ServedHost, path: string): Promise<string[]> {
  const response = await fetch(host.url + path);
  const client = await connect(host, path, { greeted: false });
  const greeted = client
    .frame(({ type }) => type === "cf_agent_identity")
    .then(({ name }) => `socket to ${String(name)}`);
  const socket = await Promise.race([greeted, client.whenClosed().then(({ code }) => String(code))]);
  client.ws.close();
  return [response.ok ? await response.text() : String(response.status), socket];
}

test("a class that the hooks refuse at the root is not reached below another agent", async () => {
  const refused: unknown[] = [];
  onTestFinished(subscribe("subagent:refused", ({ id, payload }) => refused.push([id, payload])));
  const host = await open();
  expect(await reach(host, "/agents/admin/x")).toEqual(["403", "4403"]);
  expect(await reach(host, "/agents/pub/any/sub/admin/x")).toEqual(["404", "4404"]);
  expect(await reach(host, "/agents/pub/any/sub/pub/x")).toEqual(["404", "4404"]);
  expect(await reach(host, "/agents/pub/any/sub/clerk/c/sub/admin/x")).toEqual(["404", "4404"]);
  expect(await reach(host, "/agents/pub/any/sub/admin/x/sub/clerk/c")).toEqual(["404", "4404"]);
  expect(refused.slice(0, 2)).toEqual(Array(2).fill(["Pub/any", { className: "Admin", childName: "x" }]));
  const words = await (await fetch(`${host.url}/agents/pub/any/sub/admin/x`)).text();
  expect(words).toContain("`static subAgents`");
  expect(words).not.toContain("Admin");
  expect(host.listAgents()).toEqual([]);
});

test("classes that only exist as children are reached below those that declare them, and not below others", async () => {
  const host = await open();
  expect(await reach(host, "/agents/pub/any/sub/clerk/c")).toEqual(["Pub:any Clerk:c", "socket to c"]);
  expect(await reach(host, "/agents/pub/any/sub/clerk/c/sub/clerk/d")).toEqual(["404", "4404"]);
});

test("a child that the agent itself has made is reached, whatever its class, and no other of that class", async () => {
  const host = await open();
  await host.getAgentByName(Pub, "any").make("x");
  expect(await reach(host, "/agents/pub/any/sub/admin/x")).toEqual(["Pub:any Admin:x", "socket to x"]);
  expect(await reach(host, "/agents/pub/any/sub/admin/y")).toEqual(["404", "4404"]);
  expect(await reach(host, "/agents/pub/other/sub/admin/x")).toEqual(["404", "4404"]);
  await getSubAgentByName(host.getAgentByName(Pub, "other"), Admin, "x");
  expect(await reach(host, "/agents/pub/other/sub/admin/x")).toEqual(["Pub:other Admin:x", "socket to x"]);
});

test("a parent's hook may make the child that it lets in", async () => {
  class Door extends Noted {
    override async onBeforeSubAgent(_request: Request, { name }: { name: string }): Promise<void> {
      if (name === "made") await this.subAgent(Clerk, name);
    }
  }
  const host = await openHost({ agents: { Door }, subAgents: { Clerk }, storage: memoryStorage() });
  expect(await reach(host, "/agents/door/d/sub/clerk/made")).toEqual(["Door:d Clerk:made", "socket to made"]);
  expect(await reach(host, "/agents/door/d/sub/clerk/other")).toEqual(["404", "4404"]);
});

test("an app's own address of an agent is no way around: the same hooks are asked, and the same children are there", async () => {
  const asked: string[] = [];
  const host = await openHost({
    agents: { Pub, Admin },
    subAgents: { Clerk },
    storage: memoryStorage(),
    onBeforeRequest: (_request, { path }) => void asked.push(path.map(({ className }) => className).join(" ")),
  });
  const target = { agent: { className: "Pub", name: "me" } };
  const status = async (path: string) => (await host.fetch(new Request(`http://app${path}`), target)).status;
  expect(await status("/me/sub/clerk/c")).toBe(200);
  expect(await status("/me/sub/admin/x")).toBe(404);
  expect(asked).toEqual(["Pub Clerk", "Pub Admin"]);
});

test("hooks decide by the agent that is meant: they are told the root and the whole way", async () => {
  const heard: AddressedAgent[] = [];
  const note = (_request: Request, agent: AddressedAgent) => {
    heard.push(agent);
    return agent.path.at(-1)?.className === "Clerk" ? new Response("closed", { status: 403 }) : undefined;
  };
  const host = await openHost({
    agents: { Pub },
    subAgents: { Clerk },
    storage: memoryStorage(),
    onBeforeConnect: note,
    onBeforeRequest: note,
  });
  expect(await reach(host, "/agents/pub/any/sub/clerk/c")).toEqual(["403", "4403"]);
  const root = { className: "Pub", name: "any" };
  expect(heard).toEqual(Array(2).fill({ ...root, path: [root, { className: "Clerk", name: "c" }] }));
  expect(await reach(host, "/agents/pub/any")).toEqual(["Pub:any", "socket to any"]);
});

test("a child from outside is listed once it stores something, also when its parent has left memory", async () => {
  const host = await openHost({ agents: { Pub }, subAgents: { Clerk }, idleMs: 20 });
  const client = await connect(host, "/agents/pub/any/sub/clerk/c");
  await expect.poll(() => host.status().live).toBe(0);
  expect(host.listAgents()).toEqual([]);
  expect(await client.call("keep")).toBe("c");
  expect(await host.getAgentByName(Pub, "any").listed()).toEqual(["Clerk:c"]);
  expect(host.listAgents()).toEqual(["Pub/any", "Pub/any/Clerk/c"]);
});

test("a parent whose start calls the child that wakes it does not wait for itself", async () => {
  class Anxious extends Pub {
    override async onStart(): Promise<void> {
      await (await this.subAgent(Clerk, "c")).keep();
    }
  }
  const host = await openHost({ agents: { Pub: Anxious }, subAgents: { Clerk }, idleMs: 20 });
  const client = await connect(host, "/agents/pub/any/sub/clerk/other");
  await expect.poll(() => host.status().live).toBe(0);
  expect(await client.call("keep")).toBe("other");
  expect((await host.getAgentByName(Anxious, "any").listed()).toSorted()).toEqual(["Clerk:c", "Clerk:other"]);
});

test("agent({ subAgents }) declares children too", async () => {
  const Desk = declareAgent({ name: "Desk", model: scriptedModel([]), subAgents: [Clerk] });
  const host = await openHost({ agents: { Desk, Admin }, subAgents: { Clerk }, storage: memoryStorage() });
  expect((await reach(host, "/agents/desk/d/sub/clerk/c"))[0]).toBe("Desk:d Clerk:c");
  expect((await reach(host, "/agents/desk/d/sub/admin/c"))[0]).toBe("404");
});
