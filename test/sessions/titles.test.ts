import { AIChatAgent, type AgentHost } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { user } from "../chat/client.ts";
import { exchange, openChat } from "../chat/harness.ts";
import { newNotes, noteError, openAgent } from "../chat/open-agent.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { openThink, refusal } from "../think/harness.ts";

const echo = ({ userText }: { userText: string }) => `re ${userText}`;

interface Title {
  readonly type: string;
  readonly payload: unknown;
}

/** An agent whose titles a model finds. */
async function titled(script: Script, titles: { after?: number } | boolean = true) {
  const model = scriptedModel(script, { provider: "small", modelId: "namer" });
  const events: Title[] = [];
  const note = ({ type, payload }: Title) => void events.push({ type, payload });
  onTestFinished(subscribe("session:renamed", note));
  onTestFinished(subscribe("session:title_failed", note));
  const talker = scriptedModel(echo);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override titles = titles;
        override getModel() {
          return talker;
        }
        override getTitleModel() {
          return model;
        }
      },
  );
  const named = async (name: string) => {
    const agent = await kit.agent();
    await eventually(() => agent.session.name === name, `the name "${name}"`);
    return agent.session.info;
  };
  return Object.assign(kit, { model, events, named });
}

test("a session is named after the first thing that is said in it, in the same commit", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  client.request("r", [user("u", "# Plan **my** trip")]);
  const stage = await chat.stage();
  const agent = await chat.agent();
  expect(agent.session.info).toMatchObject({ name: "Plan my trip", namedBy: "derived" });
  stage.say("Sure.").end();
  await client.done("r");
  await exchange(chat, client, 2, await chat.stored());
  expect(agent.session.name).toBe("Plan my trip");
});

test("it is named by server code too, whichever way it speaks", async () => {
  const model = scriptedModel(echo);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  const agent = await kit.agent();
  const sessions = Array.from({ length: 5 }, () => agent.createSession().id);
  const [a, b, c, d, e] = sessions as [string, string, string, string, string];
  await agent.runTurn({ input: "by a turn", session: a });
  await agent.persistMessages([user("p", "by a note")], { session: b });
  const { submissionId } = await agent.submitMessages([user("s", "by a submission")], { session: c });
  await eventually(() => agent.inspectSubmission(submissionId)?.status === "completed", "the end of it");
  await agent.addMessages([user("f", "by an addition")], { session: d, parentId: null });
  await agent.persistMessages([{ id: "x", role: "assistant", parts: [{ type: "text", text: "Hello!" }] }], {
    session: e,
  });
  expect(sessions.map((id) => agent.sessions.of(id).name)).toEqual([
    "by a turn",
    "by a note",
    "by a submission",
    "by an addition",
    null,
  ]);
  // What is said in a view names the session.
  const other = agent.createSession().id;
  await agent.persistMessages([user("v", "by a view")], { session: agent.sessions.openView(other) });
  expect(agent.sessions.of(other).name).toBe("by a view");
});

test("a model finds a better name, in the background, and its call is in the ledger", async () => {
  const kit = await titled(['<think>A trip, then.</think>\n\n"Trip to Lisbon"\nas you wish']);
  await kit.ask("I want to see the old town of Lisbon and then some of the coast");
  const info = await kit.named("Trip to Lisbon");
  expect(info.namedBy).toBe("model");
  const agent = await kit.agent();
  const [entry] = agent.listUsage({ purpose: "title" });
  expect(entry).toMatchObject({ session: "main", model: "small/namer", status: "ok", turnId: null });
  expect(agent.sessions.usage("main").calls).toBe(2);
  // Once is enough.
  await kit.ask("More.");
  await quiet();
  expect(kit.model.calls).toHaveLength(1);
  expect(kit.events.map(({ type, payload }) => [type, (payload as { by: string }).by])).toEqual([
    ["session:renamed", "derived"],
    ["session:renamed", "model"],
  ]);
});

test("it is asked after as many answers as the class says", async () => {
  const kit = await titled(["Two questions"], { after: 2 });
  await kit.ask("one");
  await quiet();
  expect(kit.model.calls).toHaveLength(0);
  await kit.ask("two");
  await kit.named("Two questions");
});

test("what a person wrote is never replaced", async () => {
  const kit = await titled([{ text: "Late title" }]);
  const agent = await kit.agent();
  agent.renameSession("main", "Mine");
  await kit.ask("a");
  await quiet();
  expect(agent.session.info).toMatchObject({ name: "Mine", namedBy: "user" });
  expect(kit.model.calls).toHaveLength(0);
});

test("not even when it is written while the model thinks", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const kit = await titled(async () => opened.then(() => "Late title"));
  const agent = await kit.agent();
  await kit.ask("a");
  await eventually(() => kit.model.calls.length === 1, "the question for a title");
  agent.renameSession("main", "Mine");
  open();
  await eventually(() => agent.listUsage({ purpose: "title" })[0]?.status === "ok", "the end of the call");
  await quiet();
  expect(agent.session.info).toMatchObject({ name: "Mine", namedBy: "user" });
});

test("nor is a session made again that was deleted meanwhile", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const kit = await titled(async () => opened.then(() => "Late title"));
  const agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.runTurn({ input: "a", session: id });
  await eventually(() => kit.model.calls.length === 1, "the question for a title");
  agent.deleteSession(id);
  open();
  await eventually(() => agent.listUsage({ purpose: "title" })[0]?.status === "ok", "the end of the call");
  await quiet();
  expect(agent.getSessions()).toEqual([]);
});

test("what fails is tried again after the next turn, three times in all", async () => {
  const kit = await titled([{ error: refusal(401) }, "<think>I cannot stop", { error: refusal(401) }, "Never"]);
  const agent = await kit.agent();
  const failures = () => kit.events.filter(({ type }) => type === "session:title_failed").length;
  for (const n of [1, 2, 3, 4]) {
    await kit.ask(`question ${n}`);
    await eventually(() => failures() === Math.min(n, 3), `failure ${n}`);
  }
  await quiet();
  expect(kit.model.calls).toHaveLength(3);
  expect(agent.session.info).toMatchObject({ name: "question 1", namedBy: "derived" });
});

test("a try that was cut by the end of a life counts, and the next life tries again", async () => {
  let calls = 0;
  const kit = await titled(async () => (++calls === 1 ? new Promise<string>(() => {}) : "After the restart"));
  await kit.ask("a");
  await eventually(() => calls === 1, "the question for a title");
  await kit.nextLife();
  await kit.ask("b");
  await kit.named("After the restart");
  const agent = await kit.agent();
  expect(agent.listUsage({ purpose: "title" }).map(({ status }) => status)).toEqual(["ok", "cut"]);
});

test("with titles: false only people name sessions", async () => {
  const kit = await titled(["Never"], false);
  await kit.ask("a");
  await quiet();
  expect((await kit.agent()).session.name).toBeNull();
  expect(kit.model.calls).toHaveLength(0);
});

test("a class that streams by itself has titles of a model too", async () => {
  const model = scriptedModel(["Short name"]);
  const notes = newNotes<AIChatAgent>();
  class Talk extends AIChatAgent {
    override titles = { model };
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    override onChatMessage() {
      return new Response("hello");
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  const kit = await openAgent(Talk, notes, {});
  const agent = await kit.agent();
  await agent.saveMessages([user("u", "a very long question")]);
  await eventually(() => agent.session.name === "Short name", "the name");
  expect(agent.sessions.usage("main")).toMatchObject({ calls: 1 });
});
