// What an agent erases, as its own code and its clients see it.
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { CLEAR, textIn, user } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

async function open(script: Parameters<typeof scriptedModel>[0] = ["One.", "Two.", "Three."]) {
  const model = scriptedModel(script);
  let inTurn: (() => Promise<unknown>) | undefined;
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { erase: serverTool(async () => inTurn?.() ?? "nothing") };
        }
      },
  );
  return Object.assign(kit, { model, within: (work: () => Promise<unknown>) => void (inTurn = work) });
}

test("a session is erased, its clients see it go, and the agent goes on", async () => {
  const kit = await open();
  const agent = await kit.agent();
  const client = await kit.connect();
  client.request("r1", [user("u1", "My number is 12345")]);
  await client.done("r1");
  expect(await agent.search("12345")).toHaveLength(1);
  const receipt = await agent.erase({ session: "main" });
  expect(receipt).toMatchObject({ messages: 2, turns: 1, usageCalls: 1, searchRows: 2, done: true });
  await client.frame(({ type }) => type === CLEAR, "the clear");
  expect(await kit.stored()).toEqual([]);
  expect(agent.messages).toEqual([]);
  expect(await agent.search("12345")).toEqual([]);
  expect(agent.eraseReceipts()).toEqual([receipt]);
  expect(agent.usage().calls).toBe(1);
  client.request("r2", [user("u2", "Hello again")]);
  await client.done("r2");
  expect((await kit.stored()).map(textIn)).toEqual(["Hello again", "Two."]);
  await kit.restart();
  expect((await kit.agent()).eraseReceipts()).toEqual([receipt]);
});

test("what stays of somebody whose messages are erased does not say who it was", async () => {
  const kit = await open();
  const agent = await kit.agent();
  const identity = { id: "u7", name: "Anna" };
  const input = { ...user("m1", "My number is 12345"), metadata: { subject: "anna" } };
  await agent.runTurn({ input, identity });
  await agent.runTurn({ input: user("m2", "Hello"), identity: { id: "u8", name: "Ben" } });
  const answer = (await kit.stored())[1]?.id ?? "";
  expect(agent.getMessageIdentity(answer)).toEqual(identity);
  await agent.erase({ subject: "anna" });
  expect((await kit.stored()).map(textIn)).toEqual(["One.", "Hello", "Two."]);
  for (const table of ["perdure_turn", "perdure_message"])
    expect(JSON.stringify(await kit.rows(`SELECT * FROM ${table}`)), table).not.toContain("Anna");
  expect(agent.getMessageIdentity("m2")).toMatchObject({ id: "u8" });
});

test("what runs in the session is stopped first, and writes nothing more", async () => {
  const kit = await open([{ text: ["Wait ", "for"], hang: true }, "Two."]);
  const agent = await kit.agent();
  const client = await kit.connect();
  client.request("r1", [user("u1", "Secret plan")]);
  await client.said("r1", "Wait for");
  const receipt = await agent.erase({ session: "main" });
  expect(receipt.done).toBe(true);
  await kit.stable();
  expect(await kit.stored()).toEqual([]);
  expect(await kit.rows("SELECT id FROM perdure_turn")).toEqual([]);
  expect(await kit.rows("SELECT id FROM perdure_message")).toEqual([]);
});

test("other sessions go on as they are, forks included", async () => {
  const kit = await open();
  const agent = await kit.agent();
  await kit.ask("Shared question");
  const fork = agent.forkSession("main", { name: "Fork" });
  await kit.ask("Only here");
  const receipt = await agent.erase({ session: "main" });
  expect(receipt).toMatchObject({ messages: 2 });
  expect(receipt.kept[0]).toMatchObject({ what: "2 messages" });
  expect(agent.getSessions().map(({ id }) => id)).toEqual([fork.id]);
  expect(agent.getCurrentSessionId()).toBe(fork.id);
  expect((await kit.stored()).map(textIn)).toEqual(["Shared question", "One."]);
  expect(await agent.search("only")).toEqual([]);
});

test("a session cannot be erased inside of its own turn", async () => {
  const kit = await open([{ toolCalls: [{ toolName: "erase", input: {} }] }, "It did not work."]);
  const agent = await kit.agent();
  kit.within(() => agent.erase({ session: "main" }));
  expect(await kit.ask("Erase yourself")).toMatchObject({ status: "completed" });
  expect(JSON.stringify(await kit.last())).toContain("within its own turn");
  expect(agent.eraseReceipts()).toEqual([]);
});

test("what is wrong with the question is said", async () => {
  const agent = await (await open()).agent();
  await expect(agent.erase({ session: "nobody" })).rejects.toMatchObject({ code: "not_found" });
  await expect(agent.erase({} as never)).rejects.toMatchObject({ code: "bad_input" });
  expect(await agent.erase({ subject: "nobody" })).toMatchObject({ messages: 0, sessions: 0 });
});
