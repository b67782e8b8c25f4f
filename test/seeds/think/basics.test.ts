/*
 * The samples of the two texts on Think that Perdure was made from, in our own words: the same names, options and shapes,
 * used in the same way. Where something has to be written otherwise, a comment says so; docs/think.md has the list.
 *
 *   basics        the smallest class, the settings of a class, configuration, sessions, what the model reads
 *   turns         streaming from a child, recovery, scheduled tasks
 *   hooks         hooks of turns, steps and tools, what a turn may change
 *   tools         agent tools, workspace, skills, execute, extensions, MCP
 *   messengers    what people say at other networks
 *
 * Not there: the Vite plugin with what it makes (think() in vite.config, virtual:think/entry, `import … from "agents:skills"`).
 */
import { convertToModelMessages, pruneMessages, streamText, type UIMessage } from "ai";
import { type ChatTurnOptions, type Session, Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { ask, type Env, open, textOf } from "./open.ts";

test("the smallest class: a model", async () => {
  class ChatSession extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
  }
  const agent = open({ Main: ChatSession }, { AI: scriptedModel(["Hello."]) });
  expect(await agent.saveMessages([ask("Hi.")])).toMatchObject({ status: "completed" });
  expect((await agent.getHistory()).map(textOf)).toEqual(["Hi.", "Hello."]);
});

test("quick start: a model and a system prompt", async () => {
  const model = scriptedModel(["Sure."]);
  class MyAgent extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override getSystemPrompt() {
      return "You help people to write code.";
    }
  }
  const agent = open({ Main: MyAgent }, { AI: model });
  await agent.saveMessages([ask("Help me.")]);
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain("You help people to write code.");
});

test("what the default turn does, written out with streamText", async () => {
  class Own extends Think<Env> {
    // `abortSignal` here; the older text has `signal`.
    override async onChatMessage({ abortSignal }: ChatTurnOptions) {
      return streamText({
        model: this.env.AI,
        system: await this.getSystemPrompt(),
        messages: await convertToModelMessages(this.messages),
        abortSignal,
      });
    }
  }
  const agent = open({ Main: Own }, { AI: scriptedModel(["By hand."]) });
  expect(await agent.saveMessages([ask("Hi.")])).toMatchObject({ status: "completed" });
  expect(textOf((await agent.getHistory()).at(-1))).toBe("By hand.");
});

test("assembleContext: what the model reads", async () => {
  const model = scriptedModel(["Yes."]);
  class Pruning extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    // It is given the messages instead of reading `this.messages`: what the turn itself adds comes after them.
    override async assembleContext({ messages }: { readonly messages: readonly UIMessage[] }) {
      const all = await convertToModelMessages([...messages]);
      return pruneMessages({
        messages: [{ role: "user", content: "Remember." }, ...all],
        toolCalls: "before-last-2-messages",
      });
    }
  }
  const agent = open({ Main: Pruning }, { AI: model });
  await agent.saveMessages([ask("Hi.")]);
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain("Remember.");
});

test("operations on sessions", async () => {
  class Talk extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    // `this.sessions.getHistory(id)` there.
    said(id: string): string[] {
      return (this.sessions.get(id)?.getHistory() ?? []).map(textOf);
    }
  }
  const agent = open({ Main: Talk }, { AI: scriptedModel(() => "Noted.") });
  const first = await agent.getCurrentSessionId();
  // It returns the session, whose id the others take.
  const { id } = await agent.createSession("research");
  await agent.switchSession(id);
  expect(await agent.getCurrentSessionId()).toBe(id);
  await agent.saveMessages([ask("Hi.")]);
  expect(await agent.said(id)).toEqual(["Hi.", "Noted."]);
  await agent.renameSession(id, "new name");
  expect((await agent.getSessions()).map(({ name }) => name)).toContain("new name");
  await agent.clearMessages();
  expect(await agent.said(id)).toEqual([]);
  await agent.switchSession(first);
  await agent.deleteSession(id);
  expect((await agent.getSessions()).map((session) => session.id)).not.toContain(id);
});

test("settings of one agent: configure, getConfig", async () => {
  type MyConfig = { modelTier: "fast" | "capable"; systemPrompt: string };
  const models = { fast: scriptedModel(["Fast."]), capable: scriptedModel(["Capable."]) };
  class Tiered extends Think<Env> {
    // The shape is named where it is read; a class has no type argument for it.
    override getModel() {
      return models[this.getConfig<MyConfig>()?.modelTier ?? "fast"];
    }
  }
  const agent = open({ Main: Tiered }, {});
  await agent.saveMessages([ask("Hi.")]);
  await agent.configure({ modelTier: "capable", systemPrompt: "Be brief." } satisfies MyConfig);
  await agent.saveMessages([ask("And now?")]);
  expect((await agent.getHistory()).map(textOf)).toEqual(["Hi.", "Fast.", "And now?", "Capable."]);
});

test("context blocks: declared by the class, and added while it runs", async () => {
  const model = scriptedModel(() => "Fine.");
  class Remembering extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override configureSession(session: Session) {
      return session.withContext("memory", { description: "Learned facts", maxTokens: 2000 }).withCachedPrompt();
    }
    async note() {
      await this.session.addContext("notes", { description: "User notes" });
      await this.session.refreshSystemPrompt();
    }
    async forget() {
      this.session.removeContext("notes");
      await this.session.refreshSystemPrompt();
    }
  }
  const agent = open({ Main: Remembering }, { AI: model });
  const prompt = async () => {
    await agent.saveMessages([ask("Hi.")]);
    return JSON.stringify(model.calls.at(-1)?.prompt);
  };
  expect(await prompt()).toContain("Learned facts");
  await agent.note();
  expect(await prompt()).toContain("User notes");
  await agent.forget();
  expect(await prompt()).not.toContain("User notes");
});

test("a block whose texts are loaded by key, as skills in a bucket were", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "load_context", input: { label: "skills", key: "release" } }] } : "Loaded.",
  );
  const texts = new Map([["release", "Write one line for each change."]]);
  // There is no R2SkillProvider: a provider is an object with `get` and `load`.
  const provider = {
    get: () => "release: how to write release notes",
    load: (key: string) => texts.get(key) ?? null,
  };
  class Skilled extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override configureSession(session: Session) {
      return session.withContext("skills", { provider }).withCachedPrompt();
    }
  }
  const agent = open({ Main: Skilled }, { AI: model });
  expect(await agent.saveMessages([ask("Notes, please.")])).toMatchObject({ status: "completed" });
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("one line for each change");
});
