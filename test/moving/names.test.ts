import * as ai from "@cloudflare/ai-chat/types";
import { Agent, PerdureError } from "perdure";
import { MessageType } from "perdure/chat";
import { extractClientToolSchemas } from "perdure/client";
import { buildAgentPath, buildAgentUrl, camelCaseToKebabCase, SUB_PREFIX } from "perdure/host";
import { createHost, getSubAgentByName, memoryStorage, routeAgentRequest } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";

class Inbox extends Agent {
  override onRequest(): Response {
    return new Response("inbox");
  }

  children(): string[] {
    return this.listSubAgents().map(({ className, name }) => `${className} ${name}`);
  }

  override onBeforeSubAgent(): Response {
    return new Response("no", { status: 403 });
  }
}

class Note extends Agent {
  who(): string {
    return this.selfPath.map(({ name }) => name).join(" ");
  }
}

function open() {
  const host = createHost({ agents: { Inbox }, subAgents: { Note }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  return host;
}

test("MessageType has the words of the public chat package", () => {
  expect(MessageType).toMatchObject({ ...ai.MessageType });
  expect(MessageType.CF_AGENT_STATE).toBe("cf_agent_state");
  expect(MessageType.RPC).toBe("rpc");
});

test("routeAgentRequest answers for agents, and null is for all other paths", async () => {
  const host = open();
  const answer = await routeAgentRequest(new Request("http://x/agents/inbox/one"), host);
  expect(await answer?.text()).toBe("inbox");
  expect(await routeAgentRequest(new Request("http://x/elsewhere"), host)).toBeNull();
});

test("getSubAgentByName reaches a child from outside, makes it if it is new, and asks no gate", async () => {
  const inbox = open().getAgentByName(Inbox, "anna");
  const note = await getSubAgentByName(inbox, Note, "first");
  expect(await note.who()).toBe("anna first");
  const deeper = await getSubAgentByName(note, Note, "below");
  expect(await deeper.who()).toBe("anna first below");
  expect(await inbox.children()).toEqual(["Note first"]);
});

test("getSubAgentByName says what it needs when it is given no stub of a host", async () => {
  await expect(getSubAgentByName({}, Note, "first")).rejects.toThrow(
    expect.objectContaining({ code: "bad_input", message: expect.stringContaining("host.getAgentByName()") as string }),
  );
});

test("buildAgentUrl is the path of an agent at an origin", () => {
  const path = [
    { className: "Inbox", name: "anna b" },
    { className: "Note", name: "1" },
  ] as const;
  const url = buildAgentUrl("https://example.com/ignored?x", path, { leafPath: "get-messages" });
  expect(url.href).toBe("https://example.com/agents/inbox/anna%20b/sub/note/1/get-messages");
  expect(url.pathname).toBe(buildAgentPath(path, { leafPath: "get-messages" }));
  expect(() => buildAgentUrl("nowhere", path)).toThrow(PerdureError);
});

test("getSchedules and getSchedule are other names of listSchedules and getScheduleById", async () => {
  class Planner extends Agent {
    async plan(): Promise<unknown> {
      const { id } = await this.schedule(60, "remind", { to: "anna" });
      return [this.getSchedules({ type: "delayed" }), this.listSchedules(), [this.getSchedule(id)]];
    }
    remind(): void {}
  }
  const host = createHost({ agents: { Planner }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  const [got, listed, one] = (await host.getAgentByName(Planner, "one").plan()) as unknown[][];
  expect(got).toHaveLength(1);
  expect([got, one]).toEqual([listed, listed]);
});

test("small helpers have their public names", () => {
  expect([camelCaseToKebabCase("MyAgent"), SUB_PREFIX]).toEqual(["my-agent", "sub"]);
  const tools = { here: { description: "d", parameters: { type: "object" }, execute: () => 1 }, there: {} };
  expect(extractClientToolSchemas(tools)).toEqual([{ name: "here", description: "d", parameters: { type: "object" } }]);
});
