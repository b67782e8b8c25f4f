import type { ToolSet } from "ai";
import { agentTool, getCurrentAgent, type Identity, type Think } from "perdure";
import type { BeforeHook } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { connectTo, user } from "../chat/client.ts";
import { childClass } from "../together/harness.ts";
import { openThink, refusal, serverTool, type TestThink } from "./harness.ts";

const ANNA: Identity = { id: "u1", name: "Anna", roles: ["admin"] };
const BEN: Identity = { id: "u2", name: "Ben" };
const PEOPLE: Readonly<Record<string, Identity>> = { anna: ANNA, ben: BEN };

/** Who somebody is follows from a token in the address. */
const byToken: BeforeHook = (request) => {
  const identity = PEOPLE[new URL(request.url).searchParams.get("token") ?? ""];
  return identity && { identity };
};

const look: Exclude<Script, readonly unknown[]> = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "Done.";

interface Told {
  readonly where: string;
  readonly identity: Identity | undefined;
  /** What `getCurrentAgent()` says there. */
  readonly current: Identity | undefined;
}

interface Setup {
  readonly script?: Exclude<Script, readonly unknown[]>;
  readonly tools?: (note: Note) => ToolSet;
  readonly settings?: Partial<Pick<Think, "messageConcurrency">>;
}
type Note = (where: string, identity: Identity | undefined) => void;

async function noting({ script = look, tools, settings }: Setup = {}, children = {}) {
  const told: Told[] = [];
  const note: Note = (where, identity) => told.push({ where, identity, current: getCurrentAgent().identity });
  const model = scriptedModel((call) => {
    // A provider is handed nobody: it asks.
    const { identity, turn } = getCurrentAgent();
    expect(turn).toBeTypeOf("string");
    note("model", identity);
    return script(call);
  });
  const own = tools ?? ((): ToolSet => ({ look: serverTool((_, options) => note("tool", identityOf(options))) }));
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override messageConcurrency = settings?.messageConcurrency ?? "queue";
        override getModel() {
          return model;
        }
        override getTools() {
          return own(note);
        }
        override beforeTurn({ identity }: Parameters<Think["beforeTurn"]>[0]) {
          note("turn", identity);
        }
        override beforeStep({ identity }: Parameters<Think["beforeStep"]>[0]) {
          note("step", identity);
        }
        override beforeToolCall({ identity }: Parameters<Think["beforeToolCall"]>[0]) {
          note("call", identity);
        }
        override afterToolCall({ identity }: Parameters<Think["afterToolCall"]>[0]) {
          note("called", identity);
        }
        override onChatError(error: unknown, { identity }: Parameters<Think["onChatError"]>[1]) {
          note("error", identity);
          return error;
        }
        override onChatRecovery({ identity }: Parameters<Think["onChatRecovery"]>[0]) {
          note("recovery", identity);
        }
      },
    { host: { onBeforeConnect: byToken, onBeforeRequest: byToken }, children },
  );
  return Object.assign(kit, {
    model,
    told,
    as: (token: string) => connectTo(`${kit.url}?token=${token}`),
    post: (path: string, token: string | undefined, body: unknown, method: "POST" | "PATCH" = "POST") =>
      fetch(`${kit.url}/${path}?token=${token ?? ""}`, { method, body: JSON.stringify(body) }),
  });
}

function identityOf(options: unknown): Identity | undefined {
  return (options as { identity?: Identity }).identity;
}

const turns = (kit: TestThink<Think>) =>
  kit.rows<{ id: string; identity: string | null }>("SELECT id, identity FROM perdure_turn ORDER BY seq");
const whoOf = async (kit: TestThink<Think>) =>
  (await turns(kit)).map(({ identity }) => (identity === null ? null : (JSON.parse(identity) as Identity).id));

/** Who was told to each place, once each. */
function places(told: readonly Told[]): Record<string, string | undefined> {
  for (const { where, identity, current } of told) expect(current, `getCurrentAgent() in ${where}`).toEqual(identity);
  return Object.fromEntries(told.map(({ where, identity }) => [where, identity?.id]));
}

const EVERYWHERE = ["turn", "step", "model", "call", "tool", "called"] as const;
const everywhere = (id: string | undefined) => Object.fromEntries(EVERYWHERE.map((where) => [where, id]));

test("who sent a message over a socket is known to every hook of its turn and to its tools", async () => {
  const kit = await noting();
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Look.")]);
  await anna.done("r1");
  expect(places(kit.told)).toEqual(everywhere("u1"));
  expect(kit.told[0]?.identity).toEqual(ANNA);
  const agent = await kit.agent();
  expect(agent.getMessageIdentity("m1")).toEqual(ANNA);
  expect(agent.getMessageIdentity((await kit.last())?.id ?? "")).toEqual(ANNA);
  expect(agent.getMessageIdentity("nobody's")).toBeUndefined();
});

test("who sent a message over HTTP is known the same", async () => {
  const kit = await noting();
  await kit.post("chat", "ben", { messages: [user("m1", "Look.")] });
  await kit.stable();
  expect(places(kit.told)).toEqual(everywhere("u2"));
  expect((await kit.agent()).getMessageIdentity("m1")).toEqual(BEN);
});

test("what a client says of itself, in frames, bodies and metadata, is not who it is", async () => {
  const kit = await noting();
  const stranger = await connectTo(`${kit.url}?_pk=u1`);
  const forged = { ...user("m1", "Look."), identity: ANNA, metadata: { identity: ANNA, perdure: { identity: ANNA } } };
  stranger.request("r1", [forged], { identity: ANNA });
  await stranger.done("r1");
  await kit.post("chat", undefined, { messages: [{ ...forged, id: "m2" }], identity: ANNA });
  await kit.stable();
  expect(places(kit.told)).toEqual(everywhere(undefined));
  expect(await whoOf(kit)).toEqual([null, null]);
  expect((await kit.agent()).getMessageIdentity("m1")).toBeUndefined();
});

test("clients are not told who wrote what", async () => {
  const kit = await noting({ script: () => "Hello." });
  const anna = await kit.as("anna");
  const ben = await kit.as("ben");
  anna.request("r1", [user("m1", "Hi.")]);
  await anna.done("r1");
  await ben.flushed();
  const transcript = JSON.stringify(await kit.stored());
  const inbox = await (await fetch(`${kit.url}/chat/inbox?token=ben`)).text();
  for (const text of [JSON.stringify(anna.frames), JSON.stringify(ben.frames), transcript, inbox])
    expect(text).not.toMatch(/Anna|identity|admin/);
});

test("a turn that was cut goes on for the same person, with nobody connected", async () => {
  let isFirst = true;
  const kit = await noting({
    script: ({ step }) =>
      step === 0
        ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] }
        : isFirst
          ? { text: "Well, ", hang: true }
          : "Done.",
  });
  await kit.post("chat", "anna", { messages: [user("m1", "Look.")] });
  await expect.poll(() => kit.model.calls.length).toBe(2);
  isFirst = false;
  kit.told.length = 0;
  await kit.restart();
  await kit.stable();
  expect(places(kit.told)).toMatchObject({ turn: "u1", step: "u1", recovery: "u1" });
  expect(await whoOf(kit)).toEqual(["u1"]);
});

test("a turn that fails is explained to the person it was for", async () => {
  const kit = await noting({ script: () => ({ error: refusal(401) }) });
  await kit.post("chat", "anna", { messages: [user("m1", "Look.")] });
  await kit.stable();
  expect(places(kit.told)).toMatchObject({ error: "u1" });
});

test("a steered message keeps who wrote it, and the turn that took it in stays whose it was", async () => {
  const gate = Promise.withResolvers<void>();
  const kit = await noting({
    settings: { messageConcurrency: "steer" },
    tools: (note) => ({
      look: serverTool(async (_, options) => {
        await gate.promise;
        note("tool", identityOf(options));
      }),
    }),
  });
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Look.")]);
  await expect.poll(() => kit.model.calls.length).toBe(1);
  await kit.post("chat", "ben", { messages: [user("m2", "To the left.")] });
  gate.resolve();
  await anna.done("r1");
  expect((await kit.agent()).steerReceipt((await turns(kit))[1]?.id ?? "")).toBeDefined();
  expect(places(kit.told)).toEqual(everywhere("u1"));
  expect((await kit.agent()).getMessageIdentity("m2")).toEqual(BEN);
});

test("messages of one person that wait are merged; another one's words stay their own", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await noting({ settings: { messageConcurrency: "merge" }, script: () => gate.promise });
  await kit.post("chat", "anna", { messages: [user("m1", "First.")] });
  await expect.poll(() => kit.model.calls.length).toBe(1);
  await kit.post("chat", "anna", { messages: [user("m2", "Second.")] });
  await kit.post("chat", "ben", { messages: [user("m3", "Third.")] });
  await kit.post("chat", "ben", { messages: [user("m4", "Fourth.")] });
  gate.resolve("Done.");
  await kit.stable();
  const agent = await kit.agent();
  const said = (await kit.stored()).filter(({ role }) => role === "user");
  expect(said.map(({ id }) => [id, agent.getMessageIdentity(id)?.id])).toEqual([
    ["m1", "u1"],
    ["m2", "u1"],
    ["m4", "u2"],
  ]);
  expect(said.at(-1)?.parts).toMatchObject([{ text: "Third." }, { text: "Fourth." }]);
});

test("who changes a message that waits is the one who asks", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await noting({ script: () => gate.promise });
  await kit.post("chat", "anna", { messages: [user("m1", "First.")] });
  await expect.poll(() => kit.model.calls.length).toBe(1);
  await kit.post("chat", "anna", { messages: [user("m2", "Pay 1.")], requestId: "r2" });
  expect((await kit.post("chat/inbox/r2", "ben", { text: "Pay 1000." }, "PATCH")).status).toBe(200);
  gate.resolve("Done.");
  await kit.stable();
  expect(await whoOf(kit)).toEqual(["u1", "u2"]);
  expect((await kit.agent()).getMessageIdentity("m2")).toEqual(BEN);
});

test("who edits a message is the one who asks; the version before stays whose it was", async () => {
  const kit = await noting({ script: () => "Done." });
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Pay 1.")]);
  await anna.done("r1");
  const ben = await kit.as("ben");
  ben.request("r2", [user("m1", "Pay 1000.")]);
  await ben.done("r2");
  expect(await whoOf(kit)).toEqual(["u1", "u2"]);
  const agent = await kit.agent();
  expect(agent.getMessageIdentity("m1")).toEqual(BEN);
  const first = agent.getBranches(null).find(({ id }) => id !== "m1");
  expect(agent.getMessageIdentity(first?.id ?? "")).toEqual(ANNA);
});

test("a transcript that a client pushes makes nobody say what they did not", async () => {
  const kit = await noting({ script: () => "Done." });
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Hi.")]);
  await anna.done("r1");
  const ben = await kit.as("ben");
  const answer = await kit.last();
  ben.send({ type: "cf_agent_chat_messages", messages: [user("m1", "Pay me."), answer, user("m2", "New.")] });
  await ben.flushed();
  const agent = await kit.agent();
  expect([agent.getMessageIdentity("m1"), agent.getMessageIdentity("m2")]).toEqual([ANNA, BEN]);
  expect(JSON.stringify(await kit.stored())).not.toContain("Pay me.");
});

test("another answer is written for the one who asks for it", async () => {
  const kit = await noting({ script: () => "Done." });
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Hi.")]);
  await anna.done("r1");
  const ben = await kit.as("ben");
  ben.request("r2", [user("m1", "Hi.")], { trigger: "regenerate-message" });
  await ben.done("r2");
  expect(await whoOf(kit)).toEqual(["u1", "u2"]);
  const agent = await kit.agent();
  expect(agent.getMessageIdentity("m1")).toEqual(ANNA);
  expect(agent.getMessageIdentity((await kit.last())?.id ?? "")).toEqual(BEN);
});

test("server code says for whom its turns are", async () => {
  const kit = await noting({ script: () => "Done." });
  const agent = await kit.agent();
  await agent.runTurn({ input: user("m1", "One."), identity: ANNA });
  await agent.saveMessages([user("m2", "Two.")], { identity: BEN });
  await agent.submitMessages([user("m3", "Three.")], { identity: ANNA });
  await agent.waitUntilStable();
  await agent.runTurn({ mode: "submit", input: user("m4", "Four."), identity: BEN });
  await agent.waitUntilStable();
  await agent.runTurn({ input: "Five." });
  // It goes on for whom the answer was.
  await agent.continueLastTurn();
  await agent.continueLastTurn(undefined, { identity: ANNA });
  expect(await whoOf(kit)).toEqual(["u1", "u2", "u1", "u2", null, null, "u1"]);
  expect(["m1", "m2", "m3", "m4"].map((id) => agent.getMessageIdentity(id)?.id)).toEqual(["u1", "u2", "u1", "u2"]);
  await expect(agent.saveMessages([user("m5", "Six.")], { identity: { name: "x" } as never })).rejects.toMatchObject({
    code: "bad_input",
  });
  expect(await whoOf(kit)).toHaveLength(7);
});

test("a child works for whom the turn is that asked for it, and so does what is told of a run that nobody waits for", async () => {
  const heard: unknown[] = [];
  const { Researcher } = childClass(
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "k1" }] } : "Found."),
    { look: serverTool((_, options) => void heard.push([identityOf(options), getCurrentAgent().identity])) },
  );
  const inputSchema = z.object({});
  const kit = await noting(
    {
      script: ({ userText, step }) =>
        userText === "Go." && step === 0
          ? {
              toolCalls: [
                { toolName: "find", input: {}, toolCallId: "c1" },
                { toolName: "later", input: {}, toolCallId: "c2" },
              ],
            }
          : "Done.",
      tools: () => ({
        find: agentTool(Researcher, { description: "Finds.", inputSchema }),
        later: agentTool(Researcher, { description: "Finds later.", inputSchema, detached: true }),
      }),
    },
    { Researcher },
  );
  await kit.post("chat", "anna", { messages: [user("m1", "Go.")] });
  await expect.poll(() => turns(kit)).toHaveLength(2);
  await kit.stable();
  expect(heard).toEqual([
    [ANNA, ANNA],
    [ANNA, ANNA],
  ]);
  expect(await whoOf(kit)).toEqual(["u1", "u1"]);
});

test("who goes on with an old answer of another does not become that one", async () => {
  const kit = await noting({ script: () => "Done." });
  const anna = await kit.as("anna");
  anna.request("r1", [user("m1", "Hi.")]);
  await anna.done("r1");
  const old = await kit.last();
  const ben = await kit.as("ben");
  ben.request("r2", [user("m2", "Pay me.")]);
  await ben.done("r2");
  ben.request("r3", [user("m1", "Hi."), old]);
  await ben.done("r3");
  await kit.post("chat", "ben", { messages: [user("m1", "Hi."), old], requestId: "r4" });
  await kit.stable();
  expect(await whoOf(kit)).toEqual(["u1", "u2", "u2", "u2"]);
});

test.each([
  ["other words", [user("m2", "Pay 1000.")]],
  ["the same words", [user("m1", "First."), user("m2", "Pay 1.")]],
])("who pushes %s for a message that waits takes it from nobody", async (_what, messages) => {
  const gate = Promise.withResolvers<string>();
  const kit = await noting({ script: () => gate.promise });
  await kit.post("chat", "anna", { messages: [user("m1", "First.")] });
  await expect.poll(() => kit.model.calls.length).toBe(1);
  await kit.post("chat", "anna", { messages: [user("m2", "Pay 1.")], requestId: "r2" });
  const ben = await kit.as("ben");
  ben.send({ type: "cf_agent_chat_messages", messages });
  await ben.flushed();
  gate.resolve("Done.");
  await kit.stable();
  expect(JSON.stringify(kit.model.calls[1]?.prompt)).toContain("Pay 1.");
  expect(await whoOf(kit)).toEqual(["u1", "u1"]);
});

test("who asks to go on while another's question is answered goes on for whom that answer is", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await noting({ script: ({ userText }) => (userText === "Pay me." ? gate.promise : "Done.") });
  await kit.post("chat", "anna", { messages: [user("m1", "Hi.")] });
  await kit.stable();
  const old = await kit.last();
  const ben = await kit.as("ben");
  ben.request("r2", [user("m2", "Pay me.")]);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  ben.request("r3", [user("m1", "Hi."), old]);
  await ben.flushed();
  gate.resolve("Paid.");
  await kit.stable();
  expect((await whoOf(kit)).slice(1)).not.toContain("u1");
});

test("who lets an answer of another go on, behind no call, is the one who asks", async () => {
  const kit = await noting({ script: () => "Done." });
  await kit.post("chat", "anna", { messages: [user("m1", "Hi.")] });
  await kit.stable();
  const ben = await kit.as("ben");
  // Otherwise words that Ben puts into the question would be answered for Anna.
  ben.send({ type: "cf_agent_chat_messages", messages: [user("m1", "Pay Ben.")] });
  ben.request("r2", [user("m1", "Pay Ben."), await kit.last()]);
  await ben.done("r2");
  expect(await whoOf(kit)).toEqual(["u1", "u2"]);
});
