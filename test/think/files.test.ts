// The files of an agent and its conversation: what the model does to them, and going back to how they were.
import { Think } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { openThink, outputsSent } from "./harness.ts";

/** Writes what the user says into a file, and says what it has written. */
const clerk: Script = ({ step, prompt }) => {
  if (step > 0) return "Written.";
  const last = prompt.findLast(({ role }) => role === "user");
  const text =
    last?.role === "user" ? last.content.map((part) => (part.type === "text" ? part.text : "")).join("") : "";
  return { toolCalls: [{ toolName: "write", input: { path: "/note.txt", content: `${text}\n` }, toolCallId: "w" }] };
};

async function writing() {
  const model = scriptedModel(clerk);
  const kit = await openThink(
    (Base) =>
      class extends (Base as unknown as typeof Think) {
        override getModel() {
          return model;
        }
        constructor(...args: ConstructorParameters<typeof Think>) {
          super(...args);
          Object.assign(this, { workspaceTools: {} });
        }
      },
  );
  return Object.assign(kit, { model });
}

const answers = async (kit: Awaited<ReturnType<typeof writing>>) =>
  (await kit.stored()).filter(({ role }) => role === "assistant").map(({ id }) => id);

test("what the model writes is there after a restart, and for the app", async () => {
  const kit = await writing();
  await kit.ask("one");
  expect(outputsSent(kit.model, 1).w).toBeDefined();
  await kit.restart();
  expect(await (await kit.agent()).workspace.readFile("/note.txt")).toBe("one\n");
});

test("files go back to how they were at an answer, and forth again; what changed can be read", async () => {
  const kit = await writing();
  await kit.ask("one");
  await kit.ask("two");
  await kit.restart();
  const agent = await kit.agent();
  const [first, second] = await answers(kit);
  expect(await agent.diffFiles(first ?? "", second)).toMatchObject([{ path: "/note.txt", change: "changed" }]);
  const { undo, updated } = await agent.restoreFiles(first ?? "");
  expect(updated).toEqual(["/note.txt"]);
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
  expect(undo).not.toBe("");
  await agent.restoreFiles(second ?? "");
  expect(await agent.workspace.readFile("/note.txt")).toBe("two\n");
  const [question] = await kit.stored();
  expect((await agent.restoreFiles(question?.id ?? "")).deleted).toEqual(["/note.txt"]);
  expect(await agent.workspace.readFile("/note.txt")).toBeNull();
  await expect(agent.restoreFiles("nobody")).rejects.toMatchObject({ code: "not_found" });
});

test("how the files were before the first one is known, also when the turn that wrote it was cut before", async () => {
  let calls = 0;
  const never = Promise.withResolvers<never>();
  const model = scriptedModel((call) => (++calls === 1 ? never.promise : clerk(call)));
  const kit = await openThink(
    (Base) =>
      class extends (Base as unknown as typeof Think) {
        override getModel() {
          return model;
        }
        constructor(...args: ConstructorParameters<typeof Think>) {
          super(...args);
          Object.assign(this, { workspaceTools: {} });
        }
      },
  );
  void kit.ask("one").catch(() => {});
  await expect.poll(() => calls).toBe(1);
  await kit.nextLife();
  await expect.poll(() => calls).toBe(3);
  await kit.stable();
  const agent = await kit.agent();
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
  const [question] = await kit.stored();
  expect((await agent.restoreFiles(question?.id ?? "")).deleted).toEqual(["/note.txt"]);
});

test("a branch is switched to together with its files, if that is asked for", async () => {
  const kit = await writing();
  const client = await kit.connect();
  await kit.ask("one");
  const [question] = await kit.stored();
  // The same question put otherwise: a second branch, whose answer writes something else.
  client.request("r2", [{ ...question, id: question?.id ?? "", role: "user", parts: [{ type: "text", text: "uno" }] }]);
  await client.done("r2");
  const agent = await kit.agent();
  expect(await agent.workspace.readFile("/note.txt")).toBe("uno\n");
  const ids = await kit.rows<{ id: string }>("SELECT id FROM perdure_message WHERE role = 'user' AND parent IS NULL");
  const other = ids.find(({ id }) => id !== question?.id)?.id ?? "";
  agent.switchBranch(other);
  expect(await agent.workspace.readFile("/note.txt")).toBe("uno\n");
  agent.switchBranch(question?.id ?? "", { restoreFiles: true });
  expect(await agent.workspace.readFile("/note.txt")).toBe("uno\n");
  agent.switchBranch(other, { restoreFiles: true });
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
});

test("files that are not in the agent's own store have no history", async () => {
  const kit = await writing();
  const agent = await kit.agent();
  await kit.ask("one");
  const [first] = await answers(kit);
  Object.assign(agent, { getWorkspace: () => null });
  await expect(agent.restoreFiles(first ?? "")).rejects.toMatchObject({ code: "bad_state" });
});

test("children work on the files of their parent, as far as it lets them", async () => {
  class Parent extends Think {
    override shareWorkspace: "read" | "read-write" | false = "read-write";
    allow(access: "read" | "read-write" | false) {
      this.shareWorkspace = access;
    }
    async ask(op: "write" | "read") {
      const child = await this.subAgent(Child, "one");
      return op === "write" ? child.put() : child.look();
    }
  }
  class Child extends Think {
    override workspace = this.parentWorkspace(Parent);
    put() {
      return this.workspace.writeFile("/shared/a.txt", "from the child");
    }
    look() {
      return this.workspace.readFile("/shared/a.txt");
    }
  }
  const host = createHost({ agents: { Parent, Child }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  const parent = host.getAgentByName(Parent, "p");
  await parent.ask("write");
  expect(await parent.callWorkspace("readFile", ["/shared/a.txt"])).toBe("from the child");
  await parent.allow("read");
  expect(await parent.ask("read")).toBe("from the child");
  await expect(parent.ask("write")).rejects.toThrow("EROFS");
  await parent.allow(false);
  await expect(parent.ask("read")).rejects.toThrow("shares no files");
});
