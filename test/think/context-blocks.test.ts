// Context blocks as a model meets them: in its prompt, and through its tools.
import type { AgentHost, Session, Think } from "perdure";
import { loadableContext, staticContext } from "perdure/context";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { DEFAULT_SYSTEM_PROMPT } from "../../src/context/capabilities.ts";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool, systemOf, type ThinkBase } from "./harness.ts";

type Declare = (session: Session) => Session;

/** An agent with blocks. `more` is what else its class has. */
async function open(
  script: Script,
  declare: Declare,
  more: (Base: ThinkBase) => new (host: AgentHost) => Think = (Base) => Base,
) {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends more(Base) {
        override getModel() {
          return model;
        }
        override configureSession(session: Session) {
          return declare(session);
        }
      },
  );
  const session = async (id = "main") => (await kit.agent()).sessions.of(id);
  return Object.assign(kit, { model, session });
}

const call = (toolName: string, input: unknown, toolCallId?: string) => ({ toolName, input, toolCallId });
const remember = (content: string, more: object = {}, id?: string) =>
  call("set_context", { label: "memory", content, ...more }, id);

/** What the user says is remembered; anything else is answered. */
const remembering: Script = ({ userText, step }) =>
  userText.startsWith("I ") && step === 0
    ? { toolCalls: [remember(userText, { action: "append" }, `c-${userText.length}`)] }
    : { text: `Ok: ${userText}` };

/** Every request after the first begins with the one before it: only its end is new. */
function expectSamePrefix(model: ScriptedModel): void {
  const texts = model.calls.map(({ prompt }) => prompt.map((message) => JSON.stringify(message)));
  texts.forEach((text, n) => {
    const before = texts[n - 1] ?? [];
    expect(text.slice(0, before.length), `call ${n}`).toEqual(before);
  });
}

test("what the model writes, the next turn reads", async () => {
  const kit = await open(remembering, (session) =>
    session.withContext("memory", { description: "Learned facts", maxTokens: 100 }),
  );
  await kit.ask("I like tea.");
  expect(outputsSent(kit.model, 1)["c-11"]).toEqual({
    type: "text",
    value: 'Written. The block "memory" has about 3 of 100 (3%) tokens now.',
  });
  await kit.ask("What do I like?");
  expect(systemOf(kit.model, 0)).toContain("(empty)");
  const system = systemOf(kit.model, 2);
  expect(system.startsWith(`${DEFAULT_SYSTEM_PROMPT}\n\n`)).toBe(true);
  expect(system).toContain(
    '<block name="memory" kind="writable" about="Learned facts" used="3% of 100 tokens">\nI like tea.\n</block>',
  );
  expect(system).toContain("You have context blocks");
  expect(system).toContain("- set_context\n");
  await kit.restart();
  await kit.ask("And after a restart?");
  expect(systemOf(kit.model, 3)).toBe(system);
});

test("a frozen prompt keeps its bytes over writes and restarts, until it is refreshed", async () => {
  let reads = 0;
  const kit = await open(remembering, (session) =>
    session
      .withContext("memory", { maxTokens: 100 })
      .withContext("today", { provider: { get: () => `read ${++reads}` } })
      .withCachedPrompt(),
  );
  const facts = ["I like tea.", "I live in Bern.", "I sail on lakes."];
  for (const fact of facts) {
    expect(await kit.ask(fact)).toMatchObject({ status: "completed" });
    await kit.restart();
  }
  await kit.ask("So?");
  expectSamePrefix(kit.model);
  expect(systemOf(kit.model, 0)).toContain("read 1");
  expect(systemOf(kit.model, 0)).toContain("as they were earlier");
  expect((await kit.session()).getContextBlock("memory")?.content).toBe(facts.join("\n"));

  await (await kit.session()).refreshSystemPrompt();
  await kit.ask("And now?");
  const system = systemOf(kit.model, kit.model.calls.length - 1);
  expect(system).toContain(facts.join("\n"));
  await kit.restart();
  await kit.ask("Still?");
  expect(systemOf(kit.model, kit.model.calls.length - 1)).toBe(system);
});

test("when a conversation is cleared the prompt is made anew, and what was remembered stays", async () => {
  const kit = await open(remembering, (session) => session.withContext("memory").withCachedPrompt());
  await kit.ask("I like tea.");
  const client = await kit.connect();
  client.clear();
  await client.flushed();
  await kit.ask("So?");
  expect(systemOf(kit.model, 1)).toContain("(empty)");
  expect(systemOf(kit.model, 2)).toContain("I like tea.");
  expect(kit.model.calls[2]?.prompt).toHaveLength(2);
});

test("blocks come and go at run time", async () => {
  const kit = await open(
    () => "Ok.",
    (session) => session.withContext("memory").withCachedPrompt(),
  );
  const system = async () => {
    await kit.ask("Hello.");
    return systemOf(kit.model, kit.model.calls.length - 1);
  };
  const before = await system();
  const session = await kit.session();
  await session.addContext("notes", { description: "User notes", initial: "Call Bob." });
  expect(await system()).toBe(before);
  await session.refreshSystemPrompt();
  const during = await system();
  expect(during).toContain("Call Bob.");
  await kit.restart();
  expect(await system()).toBe(during);
  (await kit.session()).removeContext("notes");
  expect(await system()).toBe(during);
  await (await kit.session()).refreshSystemPrompt();
  expect(await system()).toBe(before);
});

test("a shared block is the same in all sessions; others are each session's own", async () => {
  const kit = await open(
    ({ userText, step }) =>
      step > 0 || !userText.startsWith("I ")
        ? "Ok."
        : {
            toolCalls: ["memory", "team"].map((label) =>
              call("set_context", { label, content: userText, action: "append" }),
            ),
          },
    (session) => session.withContext("memory").withContext("team", { shared: true }),
  );
  const agent = await kit.agent();
  const { id } = agent.createSession("Second");
  const [first, second] = [agent.sessions.of("main"), agent.sessions.of(id)];
  await agent.runTurn({ input: user("u1", "I like tea.") });
  await agent.runTurn({ input: user("u2", "I sail."), session: id });
  expect(first.getContextBlock("memory")?.content).toBe("I like tea.");
  expect(second.getContextBlock("memory")?.content).toBe("I sail.");
  for (const session of [first, second]) expect(session.getContextBlock("team")?.content).toBe("I like tea.\nI sail.");
  await agent.runTurn({ input: user("u3", "So?"), session: id });
  const system = systemOf(kit.model, 4);
  expect(system).toContain('<block name="memory" kind="writable">\nI sail.\n</block>');
  expect(system).toContain('<block name="team" kind="writable">\nI like tea.\nI sail.\n</block>');

  const fork = agent.forkSession(id);
  await agent.runTurn({ input: user("u4", "I bake."), session: fork.id });
  expect(agent.sessions.of(fork.id).getContextBlock("memory")?.content).toBe("I sail.\nI bake.");
  expect(second.getContextBlock("memory")?.content).toBe("I sail.");
  agent.deleteSession(id);
  expect(first.getContextBlock("team")?.content).toContain("I bake.");
  expect(await kit.rows("SELECT key FROM perdure_cell WHERE key LIKE 'block:%' ORDER BY key")).toEqual(
    [{ key: `block:${fork.id}:memory` }, { key: "block:main:memory" }, { key: "block:team" }].sort((a, b) =>
      a.key < b.key ? -1 : 1,
    ),
  );
});

test("a provider that fails costs no turn: the model reads what there was last, and of its own write that it failed", async () => {
  const shelf = { text: "A boat.", broken: false };
  const lock = () => {
    if (shelf.broken) throw new Error("The shelf is locked.");
  };
  const kit = await open(
    ({ userText, step }) =>
      userText === "Write." && step === 0
        ? { toolCalls: [call("set_context", { label: "shelf", content: "A car." }, "c1")] }
        : "Ok.",
    (session) =>
      session.withContext("shelf", {
        provider: {
          get: () => {
            lock();
            return shelf.text;
          },
          set: (content: string) => {
            lock();
            shelf.text = content;
          },
        },
      }),
  );
  await kit.ask("Hello.");
  shelf.broken = true;
  await kit.restart();
  expect(await kit.ask("Write.")).toMatchObject({ status: "completed" });
  expect(systemOf(kit.model, 1)).toContain("A boat.");
  expect(JSON.stringify(outputsSent(kit.model, 2).c1)).toContain("The shelf is locked.");
  expect(kit.takeErrors()).toEqual(['Reading the block "shelf" failed: The shelf is locked.']);
  shelf.broken = false;
  await kit.ask("Write.");
  await kit.ask("So?");
  expect(systemOf(kit.model, kit.model.calls.length - 1)).toContain("A car.");
});

test("what the model gets wrong it can put right in the same turn", async () => {
  const kit = await open(
    ({ step }) =>
      [
        {
          toolCalls: [remember("x".repeat(100), {}, "c0"), call("set_context", { label: "memo", content: "y" }, "c1")],
        },
        { toolCalls: [remember("Short.", {}, "c2")] },
      ][step] ?? "Done.",
    (session) => session.withContext("memory", { maxTokens: 10 }),
  );
  await kit.ask("Remember a lot.");
  const first = outputsSent(kit.model, 1);
  expect(JSON.stringify(first.c0)).toContain("about 15 tokens shorter");
  expect(first.c1).toEqual({
    type: "error-text",
    value: 'There is no block "memo". Blocks that can be written: memory.',
  });
  expect((await kit.session()).getContextBlock("memory")?.content).toBe("Short.");
  expect(textIn(await kit.last())).toBe("Done.");
});

test("who the agent is comes first, and is not said twice", async () => {
  const soul = { provider: staticContext("You are Captain Nemo.") };
  const systems = async (declare: Declare, own?: string) => {
    const kit = await open(
      () => "Aye.",
      declare,
      own === undefined
        ? undefined
        : (Base) =>
            class extends Base {
              override getSystemPrompt() {
                return own;
              }
            },
    );
    await kit.ask("Hello.");
    return systemOf(kit.model);
  };
  expect(await systems((session) => session)).toBe(DEFAULT_SYSTEM_PROMPT);
  expect(await systems((session) => session.withContext("soul", soul))).toMatch(/^These context blocks[^]*Nemo/);
  const own = await systems((session) => session.withContext("soul", soul), "You obey the house rules.");
  expect(own).toMatch(/^You obey the house rules\.\n\nThese context blocks[^]*Nemo/);
  expect(own).not.toContain(DEFAULT_SYSTEM_PROMPT);
});

test("what the class says takes effect at once, also before a frozen text", async () => {
  const rules = { text: "Be brief." };
  const kit = await open(
    () => "Ok.",
    (session) => session.withContext("memory").withCachedPrompt(),
    (Base) =>
      class extends Base {
        override getSystemPrompt() {
          return rules.text;
        }
      },
  );
  await kit.ask("Hello.");
  rules.text = "Be long.";
  await kit.ask("Hello.");
  expect(systemOf(kit.model, 1)).toBe(systemOf(kit.model, 0).replace("Be brief.", "Be long."));
});

test("a client cannot put a tool of its own in the place of a context tool; the class can", async () => {
  const own: Record<string, ReturnType<typeof serverTool>> = {};
  const kit = await open(
    ({ step }) => (step === 0 ? { toolCalls: [remember("Tea.", {}, "c1")] } : "Ok."),
    (session) => session.withContext("memory"),
    (Base) =>
      class extends Base {
        override getTools() {
          return own;
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "Hello." }] }], {
    clientTools: [{ name: "set_context", description: "Theirs" }],
  });
  await client.done("r1");
  expect((await kit.session()).getContextBlock("memory")?.content).toBe("Tea.");
  own.set_context = serverTool(() => "not today");
  await kit.ask("Again.");
  expect(Object.values(outputsSent(kit.model, 3)).at(-1)).toEqual({ type: "text", value: "not today" });
});
test("texts are loaded when they are needed", async () => {
  const kit = await open(
    ({ step }) =>
      [
        { toolCalls: [call("load_context", { label: "skills", key: "tea" }, "c0")] },
        { toolCalls: [call("unload_context", { label: "skills", key: "tea" }, "c1")] },
      ][step] ?? "Done.",
    (session) =>
      session.withContext("skills", {
        provider: loadableContext({ tea: { description: "How to make tea", content: "Boil water." } }),
      }),
  );
  await kit.ask("Make tea.");
  expect(systemOf(kit.model)).toContain('<block name="skills" kind="loadable">\n- tea: How to make tea\n</block>');
  expect(systemOf(kit.model)).not.toContain("Boil water.");
  expect(outputsSent(kit.model, 1).c0).toEqual({ type: "text", value: "Boil water." });
  // What was sent stays as it is.
  expect(outputsSent(kit.model, 2).c0).toEqual({ type: "text", value: "Boil water." });
});
