// Somebody says yes to a call and goes on talking at once: the call runs all the same, before what was said is answered.
import { expect, test } from "vitest";
import { scriptedModel } from "perdure/testing";
import { textIn, user } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

async function asked(ids: readonly string[] = ["c1"]) {
  const paid: string[] = [];
  const model = scriptedModel(({ userText, prompt }) => {
    const isAnswered = prompt.at(-1)?.role === "tool";
    return userText === "pay" && !isAnswered
      ? { toolCalls: ids.map((toolCallId) => ({ toolName: "pay", input: {}, toolCallId })) }
      : "Done.";
  });
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            pay: serverTool(
              (_input, { toolCallId }) => {
                paid.push(toolCallId);
                return "paid";
              },
              { needsApproval: true },
            ),
          };
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1", "pay")]);
  await client.done("r1");
  return { ...kit, client, paid };
}

const callIn = (message: { readonly parts: readonly object[] } | undefined, id = "c1") =>
  message?.parts.find((part) => "toolCallId" in part && part.toolCallId === id);

test("a message right behind a yes: the approved call runs, and the message is answered after it", async () => {
  const { client, paid, stored, stable } = await asked();
  client.approve("c1", true);
  client.request("r2", [user("u2", "and now?")]);
  expect(await client.done("r2")).toMatchObject({ outcome: "completed" });
  await stable();
  expect(paid).toEqual(["c1"]);
  const [, answer, question, last] = await stored();
  expect(callIn(answer)).toMatchObject({ state: "output-available", output: "paid" });
  expect([textIn(answer), question?.id, textIn(last)]).toEqual(["Done.", "u2", "Done."]);
});

test("the same over HTTP, where the yes was acknowledged before the message came", async () => {
  const { url, paid, stored, stable } = await asked();
  const post = (path: string, body: object) => fetch(url + path, { method: "POST", body: JSON.stringify(body) });
  expect(await (await post("/chat/tools/c1", { approved: true })).json()).toEqual({ changed: true });
  expect((await post("/chat", { messages: [user("u2", "and now?")] })).status).toBe(202);
  await stable();
  expect(paid).toEqual(["c1"]);
  expect(callIn((await stored())[1])).toMatchObject({ state: "output-available" });
});

test.each(["runTurn", "submitMessages"] as const)(
  "a turn of the server right behind a yes (%s): the call runs",
  async (how) => {
    const { agent, client, paid, stored, stable } = await asked();
    client.approve("c1", true);
    await client.flushed();
    const own = await agent();
    if (how === "runTurn") await own.runTurn({ input: user("u2", "and now?") });
    else await own.submitMessages([user("u2", "and now?")]);
    await stable();
    expect(paid).toEqual(["c1"]);
    expect((await stored()).map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  },
);

test("a message behind a no needs no turn for the call: it is answered with what was denied", async () => {
  const { client, paid, stored, stable } = await asked();
  client.approve("c1", false);
  client.request("r2", [user("u2", "and now?")]);
  await client.done("r2");
  await stable();
  expect(paid).toEqual([]);
  expect(callIn((await stored())[1])).toMatchObject({ state: "output-denied" });
});

test("a message while another question of the same answer is open: what was approved is told as not run", async () => {
  const { client, paid, stored, stable } = await asked(["c1", "c2"]);
  client.approve("c1", true);
  client.request("r2", [user("u2", "and now?")]);
  expect(await client.done("r2")).toMatchObject({ outcome: "completed" });
  // A yes that comes too late changes nothing.
  client.approve("c2", true);
  await client.flushed();
  await stable();
  expect(paid).toEqual([]);
  const list = await stored();
  expect(list.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  const notRun = expect.stringContaining("did not run") as string;
  expect(callIn(list[1])).toMatchObject({ state: "output-error", errorText: notRun, approval: { approved: true } });
  expect(callIn(list[1], "c2")).toMatchObject({ state: "output-error" });
});

test("messages that a client pushes behind a yes do not undo it", async () => {
  const { client, paid, stored, stable } = await asked();
  client.approve("c1", true);
  client.send({ type: "cf_agent_chat_messages", messages: [...(await stored()), user("u2", "by the way")] });
  await client.flushed();
  await stable();
  expect(paid).toEqual(["c1"]);
  const list = await stored();
  expect(callIn(list[1])).toMatchObject({ state: "output-available", output: "paid" });
  expect(list.at(-1)?.id).toBe("u2");
});
