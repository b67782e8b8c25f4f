// Sessions as the code of an agent uses them.
import type { UIMessage } from "ai";
import type { AgentHost, Session, TurnContext } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, TRANSCRIPT, user } from "../chat/client.ts";
import { exchange, openChat } from "../chat/harness.ts";
import { eventually } from "../host/open-host.ts";
import { openThink, sent, serverTool, systemOf, type ThinkBase } from "../think/harness.ts";

const echo = ({ userText }: { userText: string }) => `re ${userText}`;
const texts = (messages: readonly UIMessage[]) => messages.map((message) => textIn(message));
const unknown = expect.objectContaining({ code: "not_found" });

function talking(script: Script = echo, more?: (Base: ThinkBase) => new (host: AgentHost) => InstanceType<ThinkBase>) {
  const model = scriptedModel(script);
  const kit = openThink((Base) => {
    class Own extends Base {
      override getModel() {
        return model;
      }
      override getSystemPrompt() {
        return "Be brief.";
      }
    }
    return more?.(Own) ?? Own;
  });
  return kit.then((opened) => ({ ...opened, ...{ model } }));
}

test("turns of server code run in the session that they name", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  const { id: session } = agent.createSession("Side");
  await kit.ask("main one");
  await agent.runTurn({ input: "side one", session });
  await agent.chat("side two", { onEvent: () => {}, onDone: () => {} }, { session });
  await agent.saveMessages([user("s3", "side three")], { session });
  await agent.saveMessages((messages) => [user("s4", `side ${messages.length}`)], { session });
  const { submissionId } = await agent.submitMessages([user("s5", "side five")], { session });
  await eventually(() => agent.inspectSubmission(submissionId)?.status === "completed", "the end of a submission");
  await agent.persistMessages([user("s6", "note")], { session });
  expect(texts(agent.getHistory(null, { session }))).toEqual(
    ["side one", "side two", "side three", "side 6", "side five"]
      .flatMap((text) => [text, `re ${text}`])
      .concat("note"),
  );
  expect(texts(agent.getHistory())).toEqual(["main one", "re main one"]);
  // What the model reads is that session and nothing else.
  expect(sent(kit.model, 2).join()).not.toContain("main one");
  expect(agent.sessions.usage(session).calls).toBe(5);
  expect(agent.sessions.usage("main").calls).toBe(1);
  agent.clearMessages({ session });
  expect(agent.getHistory(null, { session })).toEqual([]);
  expect(agent.getHistory()).toHaveLength(2);
});

test("an unknown session is an error wherever it is named, and nothing is made of it", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  const session = "nowhere";
  await expect(agent.runTurn({ input: "a", session })).rejects.toThrow(unknown);
  await expect(agent.runTurn({ mode: "submit", input: "a", session })).rejects.toThrow(unknown);
  await expect(agent.saveMessages([user("a")], { session })).rejects.toThrow(unknown);
  await expect(agent.persistMessages([user("a")], { session })).rejects.toThrow(unknown);
  await expect(agent.submitMessages([user("a")], { session })).rejects.toThrow(unknown);
  await expect(agent.addMessages([user("a")], { session })).rejects.toThrow(unknown);
  await expect(agent.continueLastTurn({}, { session })).rejects.toThrow(unknown);
  expect(() => agent.clearMessages({ session })).toThrow(unknown);
  expect(() => agent.switchSession(session)).toThrow(unknown);
  expect(agent.getSessions()).toEqual([]);
});

test("hooks are told which session a turn is of, and `session` is it", async () => {
  const seen: [string, string][] = [];
  const kit = await talking(
    echo,
    (Base) =>
      class extends Base {
        override beforeTurn({ sessionId }: TurnContext): undefined {
          seen.push([sessionId, this.session.id]);
        }
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.runTurn({ input: "a", session: id });
  await agent.runTurn({ input: "b" });
  expect(seen).toEqual([
    [id, id],
    ["main", "main"],
  ]);
});

test("turns of different sessions each answer their own, those of one in their order", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  const ids = ["main", agent.createSession().id, agent.createSession().id];
  const turns = ids.flatMap((session, i) => [1, 2].map((n) => agent.runTurn({ input: `${i} ${n}`, session })));
  expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(Array(6).fill("completed"));
  for (const [i, session] of ids.entries())
    expect(texts(agent.getHistory(null, { session }))).toEqual([`${i} 1`, `re ${i} 1`, `${i} 2`, `re ${i} 2`]);
});

test("configureSession gives each session its blocks; what they hold survives a restart", async () => {
  const configured: string[] = [];
  const kit = await talking(
    echo,
    (Base) =>
      class extends Base {
        override async configureSession(session: Session) {
          configured.push(session.id);
          await Promise.resolve();
          return session.withContext("memory", { description: "What you know." });
        }
      },
  );
  let agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.session.replaceContextBlock("memory", "The user likes tea.");
  await kit.ask("a");
  await agent.runTurn({ input: "b", session: id });
  expect(systemOf(kit.model, 0)).toContain("The user likes tea.");
  expect(systemOf(kit.model, 1)).not.toContain("The user likes tea.");
  expect(configured.toSorted()).toEqual(["main", id].toSorted());
  await kit.restart();
  agent = await kit.agent();
  await kit.ask("c");
  expect(systemOf(kit.model, 2)).toContain("The user likes tea.");
});

test("a configureSession that throws fails the turn, and the next turn tries again", async () => {
  let tries = 0;
  const kit = await talking(
    echo,
    (Base) =>
      class extends Base {
        override async configureSession(_session: Session) {
          if (++tries === 1) throw new Error("no settings yet");
        }
      },
  );
  expect(await kit.ask("a")).toMatchObject({ status: "error", error: expect.stringMatching(/^Something went/) });
  expect(await kit.ask("b")).toMatchObject({ status: "completed" });
  expect(kit.takeErrors()).toContain("no settings yet");
});

test("addMessages goes behind the parent that it names", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  await agent.addMessages([user("a"), user("b"), user("c")]);
  await agent.addMessages([user("x"), user("y")], { parentId: "a" });
  expect(agent.getHistory().map(({ id }) => id)).toEqual(["a", "x", "y"]);
  await agent.addMessages([user("first")], { parentId: null });
  expect(agent.getBranches(null).map(({ id }) => id)).toEqual(["a", "first"]);
  // What is there already stays where it is.
  await agent.addMessages([user("b", "changed")], { parentId: "x" });
  expect(agent.getBranches("a").map(({ id }) => id)).toEqual(["b", "x"]);
  expect(textIn(agent.session.getMessage("b"))).toBe("changed");
  await agent.addMessages([user("b", "again")], { parentId: "x", mode: "append" });
  expect(textIn(agent.session.getMessage("b"))).toBe("changed");
  await expect(agent.addMessages([user("z")], { parentId: "nobody" })).rejects.toThrow(unknown);
  expect(agent.session.getMessage("z")).toBeUndefined();
});

test("a branch is not left while a turn is under way on it; others may be", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  const stored = await exchange(chat, client, 1);
  client.request("again", stored.slice(0, 1), { trigger: "regenerate-message" });
  const stage = await chat.stage();
  stage.say("second");
  await client.said("again", "second");
  const agent = await chat.agent();
  const busy = expect.objectContaining({ code: "bad_state" });
  const first = stored[1]?.id ?? "";
  expect(() => agent.switchBranch(first)).toThrow(busy);
  // A fork does not have what is still being written.
  const fork = agent.sessions.fork("main");
  expect(fork.getHistory().map(({ id }) => id)).toEqual(["u1"]);
  const view = agent.sessions.of(agent.sessions.openView("main", first));
  expect(texts(view.getHistory())).toEqual(["question 1", "answer 1"]);
  stage.end();
  await client.done("again");
  expect(texts(await chat.stored())).toEqual(["question 1", "second"]);
  agent.switchBranch(first);
  expect(texts(await chat.stored())).toEqual(["question 1", "answer 1"]);
  await client.frame(({ type, messages }) => type === TRANSCRIPT && messages?.[1]?.id === first, "the branch");
});

test("a turn in a view is one of its session, on a branch of its own", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  await kit.ask("a");
  await kit.ask("b");
  const [, answer] = agent.getHistory();
  const view = agent.sessions.openView("main", answer?.id);
  expect(texts(agent.getHistory(null, { session: view }))).toHaveLength(4);
  await agent.addMessages([user("v")], { session: view, parentId: answer?.id ?? "" });
  await agent.runTurn({ input: "c", session: view });
  expect(texts(agent.getHistory(null, { session: view }))).toEqual(["a", "re a", textIn(user("v")), "c", "re c"]);
  expect(texts(agent.getHistory())).toEqual(["a", "re a", "b", "re b"]);
  expect(agent.sessions.usage(view).calls).toBe(3);
  expect(agent.getBranches(answer?.id ?? "")).toHaveLength(2);
});

test("a session that is deleted while a turn of it runs stops it; others go on", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  const agent = await chat.agent();
  const { id } = agent.createSession();
  agent.switchSession(id);
  client.request("r", [user("u")]);
  const stage = await chat.stage();
  stage.say("half");
  await client.said("r", "half");
  const other = agent.saveMessages([user("m")], { session: "main" });
  expect(agent.deleteSession(id)).toBe(true);
  expect(stage.options.abortSignal.aborted).toBe(true);
  (await chat.stage()).say("whole").end();
  expect(await other).toMatchObject({ status: "completed" });
  expect(agent.getSessions().map((info) => info.id)).toEqual(["main"]);
  expect(texts(agent.getHistory())).toEqual([textIn(user("m")), "whole"]);
});

test("everything about sessions is there after a restart", async () => {
  const kit = await talking();
  let agent = await kit.agent();
  await kit.ask("a");
  const fork = agent.forkSession();
  await agent.runTurn({ input: "b", session: fork.id });
  agent.renameSession(fork.id, "Other way");
  agent.switchSession(fork.id);
  const sessions = agent.getSessions();
  await kit.restart();
  agent = await kit.agent();
  expect(agent.getSessions()).toEqual(sessions);
  expect(agent.getCurrentSessionId()).toBe(fork.id);
  expect(texts(agent.messages)).toEqual(["a", "re a", "b", "re b"]);
  expect(texts(agent.getHistory(null, { session: "main" }))).toEqual(["a", "re a"]);
});

test("the oldest messages go beyond the limit, with their branches, but not what a fork shows", async () => {
  const chat = await openChat({ maxPersistedMessages: 4 });
  const client = await chat.connect();
  let stored = await exchange(chat, client, 1);
  client.request("again", stored.slice(0, 1), { trigger: "regenerate-message" });
  (await chat.stage()).say("better 1").end();
  await client.done("again");
  const agent = await chat.agent();
  expect(agent.getBranches("u1")).toHaveLength(2);
  const kept = agent.sessions.fork("main", { at: stored[1]?.id ?? "" });
  stored = await exchange(chat, client, 2, await chat.stored());
  stored = await exchange(chat, client, 3, stored);
  expect(texts(stored)).toEqual(["question 2", "answer 2", "question 3", "answer 3"]);
  expect(texts(kept.getHistory())).toEqual(["question 1", "answer 1"]);
  agent.deleteSession(kept.id);
  const rows = await chat.rows<{ n: number }>("SELECT count(*) AS n FROM perdure_message");
  expect(rows[0]?.n).toBe(4);
});

test("a session lets go of what a fork shows where their ways part", async () => {
  const chat = await openChat({ maxPersistedMessages: 4 });
  const client = await chat.connect();
  let stored = await exchange(chat, client, 1);
  stored = await exchange(chat, client, 2, stored);
  const agent = await chat.agent();
  const fork = agent.sessions.fork("main");
  // Nothing is left to go that the fork does not show.
  await agent.persistMessages([user("n1")]);
  expect(texts(await chat.stored())).toHaveLength(5);
  await agent.persistMessages([user("n2"), user("n3"), user("n4")]);
  expect((await chat.stored()).map(({ id }) => id)).toEqual(["n1", "n2", "n3", "n4"]);
  expect(texts(fork.getHistory())).toEqual(["question 1", "answer 1", "question 2", "answer 2"]);
  await agent.persistMessages([user("n5")]);
  expect((await chat.stored()).map(({ id }) => id)).toEqual(["n2", "n3", "n4", "n5"]);
  await chat.nextLife();
  expect((await chat.stored()).map(({ id }) => id)).toEqual(["n2", "n3", "n4", "n5"]);
  const again = await chat.agent();
  expect(again.getHistory(null, { session: fork.id })).toHaveLength(4);
  again.deleteSession(fork.id);
  const rows = await chat.rows<{ n: number }>("SELECT count(*) AS n FROM perdure_message");
  expect(rows[0]?.n).toBe(4);
});

test("search finds what was said in any session", async () => {
  const kit = await talking();
  const agent = await kit.agent();
  const { id } = agent.createSession("Sea");
  await agent.runTurn({ input: "lighthouse keepers", session: id });
  await kit.ask("railways");
  const hits = await agent.search("lighthouse");
  expect(hits.map(({ sessionId, sessionName, role }) => ({ sessionId, sessionName, role }))).toContainEqual({
    sessionId: id,
    sessionName: "Sea",
    role: "user",
  });
  expect(await agent.search("lighthouse", { session: "main" })).toEqual([]);
});

test("an approval is answered from server code without knowing where it waits", async () => {
  const ran: string[] = [];
  const kit = await talking(
    ({ step, userText }) =>
      step === 0 ? { toolCalls: [{ toolName: "send", input: {}, toolCallId: "c1" }] } : echo({ userText }),
    (Base) =>
      class extends Base {
        override getTools() {
          return { send: serverTool(() => ran.push("sent"), { needsApproval: true }) };
        }
      },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.runTurn({ input: "a", session: id });
  expect(agent.pendingApprovals()).toHaveLength(1);
  expect(agent.answerApproval("c1", true, { session: "main" })).toBe(false);
  expect(agent.answerApproval("c1", true)).toBe(true);
  await kit.stable();
  expect(ran).toEqual(["sent"]);
  expect(textIn(agent.getHistory(null, { session: id }).at(-1))).toBe("re a");
  expect(agent.getHistory()).toEqual([]);
});

test("a question that nobody answers in time expires in any session", async () => {
  const model = scriptedModel(({ step, userText }) =>
    step === 0 ? { toolCalls: [{ toolName: "send", input: {}, toolCallId: "c1" }] } : echo({ userText }),
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override approvalTimeoutMs = 1_000;
        override getModel() {
          return model;
        }
        override getTools() {
          return { send: serverTool(() => "sent", { needsApproval: true }) };
        }
      },
    { manual: true },
  );
  const agent = await kit.agent();
  const { id } = agent.createSession();
  await agent.runTurn({ input: "a", session: id });
  await kit.clock.advance(2_000);
  await eventually(() => agent.pendingApprovals().length === 0, "the end of the question");
  await kit.clock.advance(1_000);
  await kit.stable();
  expect(JSON.stringify(agent.getHistory(null, { session: id }).at(-1))).toContain("output-denied");
});
