// Streaming from a child, stop, fibers, recovery, overflow, scheduled tasks.
import type { UIMessage } from "ai";
import {
  Agent,
  type ChatRecoveryContext,
  type ChatRecoveryOptions,
  defaultContextOverflowClassifier,
  type FiberContext,
  type StreamCallback,
  Think,
  type ThinkScheduledTasks,
} from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { manualClock, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { ask, type Env, open, textOf } from "./open.ts";

class ChatSession extends Think<Env> {
  override getModel() {
    return this.env.AI;
  }
}

test("a parent has a child chat, and relays what it streams", async () => {
  class Parent extends Agent<Env> {
    readonly seen: string[] = [];
    async delegate(): Promise<string[]> {
      const seen: string[] = [];
      // Any object with the methods: there is no RpcTarget to extend.
      const relay: StreamCallback = {
        onStart: ({ requestId }) => void seen.push(requestId === "" ? "no id" : "start"),
        onEvent: (json) => void seen.push((JSON.parse(json) as { type: string }).type),
        onDone: () => void seen.push("done"),
        onError: (error) => void seen.push(error),
        onInterrupted: () => void seen.push("interrupted"),
      };
      const session = await this.subAgent(ChatSession, "agent-abc");
      await session.configure({ modelTier: "capable", systemPrompt: "Be brief." });
      await session.chat("Summarize the project", relay, { signal: new AbortController().signal, tools: {} });
      return seen;
    }
  }
  const agent = open({ Main: Parent, ChatSession }, { AI: scriptedModel(["It is small."]) });
  const seen = await agent.delegate();
  expect(seen[0]).toBe("start");
  expect(seen).toContain("text-delta");
  expect(seen.at(-1)).toBe("done");
});

test("a parent stops a child's turn by the id that onStart told", async () => {
  class Parent extends Agent<Env> {
    async stopped(): Promise<string> {
      const session = await this.subAgent(ChatSession, "thread-1");
      const relay: StreamCallback = {
        // An AbortSignal may be handed to `chat` as well: nothing has to carry it across.
        onStart: async ({ requestId }) => void (await session.cancelChat(requestId, "enough")),
        onEvent: () => {},
        onDone: () => {},
      };
      return (await session.chat("Go on for ever", relay)).status;
    }
  }
  const model = scriptedModel(() => ({ text: "And", hang: true }));
  expect(await open({ Main: Parent, ChatSession }, { AI: model }).stopped()).toBe("aborted");
});

test("a fiber: a method that is started by name, and notes how far it is", async () => {
  const done: unknown[] = [];
  class Worker extends Think<Env> {
    // Harmless: what a restart cuts is always started again.
    fibers = true;
    async doExpensiveWork(payload: { url: string }, context: FiberContext) {
      this.stashFiber({ progress: 50 });
      done.push([payload.url, context.attempt]);
      return { done: true };
    }
    someMethod(): string {
      return this.spawnFiber("doExpensiveWork", { url: "https://a.example" });
    }
  }
  const agent = open({ Main: Worker }, {});
  const fiberId = await agent.someMethod();
  await expect.poll(async () => (await agent.inspectFiber(fiberId))?.status).toBe("completed");
  expect(done).toEqual([["https://a.example", 1]]);
  expect((await agent.inspectFiber(fiberId))?.snapshot).toEqual({ progress: 50 });
});

test("recovery: bounds, words, and a hook that is told", async () => {
  const seen: unknown[] = [];
  const clock = manualClock();
  class Recovering extends Think<Env> {
    override chatRecovery = { maxAttempts: 6, terminalMessage: "The assistant was interrupted. Please try again." };
    override chatStreamStallTimeoutMs = 1_000;
    override getModel() {
      return this.env.AI;
    }
    override async onChatRecovery(ctx: ChatRecoveryContext): Promise<ChatRecoveryOptions> {
      seen.push([ctx.attempt, ctx.recoveryKind, ctx.incidentId.startsWith(ctx.requestId)]);
      return {};
    }
  }
  const model = scriptedModel(({ index }) => (index === 0 ? { text: "Half", hang: true } : " and half."));
  const host = createHost({ agents: { Recovering }, storage: memoryStorage(), env: { AI: model }, clock });
  onTestFinished(() => host.stop());
  const agent = host.getAgentByName(Recovering, "one");
  const turn = agent.saveMessages([ask("Hi.")]);
  await expect.poll(() => model.calls.length).toBe(1);
  await expect.poll(() => clock.pending()).toBeGreaterThan(0);
  await clock.advance(1_000);
  await expect.poll(() => model.calls.length).toBe(2);
  await clock.advance(200);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(seen).toEqual([[1, "continue", true]]);
});

test("a question that nobody answered becomes an ordinary sentence", async () => {
  class Asking extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    protected override repairInterruptedToolPart(part: UIMessage["parts"][number]): UIMessage["parts"][number] {
      const record = part as Record<string, unknown>;
      if (record.type === "tool-ask_user") {
        const input = record.input as { prompt?: string } | undefined;
        if (input?.prompt) return { type: "text", text: input.prompt };
      }
      return super.repairInterruptedToolPart(part);
    }
  }
  const model = scriptedModel(["Oslo it is."]);
  const agent = open({ Main: Asking }, { AI: model });
  const open_ = { type: "tool-ask_user", toolCallId: "c1", state: "input-available", input: { prompt: "Which town?" } };
  await agent.persistMessages([
    ask("Book me a room."),
    { id: "a1", role: "assistant", parts: [open_] as unknown as UIMessage["parts"] },
  ]);
  await agent.saveMessages([ask("Oslo.")]);
  expect((await agent.getHistory()).map(textOf)).toEqual(["Book me a room.", "Which town?", "Oslo.", "Oslo it is."]);
});

test("a conversation that outgrows the model: who says so, and what is done", async () => {
  class Long extends Think<Env> {
    override contextOverflow = { reactive: true, proactive: { maxInputTokens: 200_000 } };
    override classifyChatError = defaultContextOverflowClassifier;
    override getModel() {
      return this.env.AI;
    }
  }
  const model = scriptedModel([{ error: new Error("prompt is too long: 210000 tokens > 200000 maximum") }]);
  const agent = open({ Main: Long }, { AI: model });
  // There is nothing to make shorter in one message: the turn ends with words that say so.
  expect(await agent.saveMessages([ask("Hi.")])).toMatchObject({ status: "error" });
  expect((await agent.listUsage()).at(-1)).toMatchObject({ errorClass: "context_overflow" });
});

test("tasks that come again and again", async () => {
  const clock = manualClock();
  const created: unknown[] = [];
  class Assistant extends Think<Env & { DIGEST_WORKFLOW: { create(run: object): void } }> {
    override getModel() {
      return this.env.AI;
    }
    override getDefaultTimezone() {
      return "Europe/London";
    }
    override getScheduledTasks(): ThinkScheduledTasks {
      return {
        weeklyReport: { schedule: "every week on monday at 09:00", prompt: "Sum up my week." },
        workout: { schedule: "every day at 08:00 in Europe/London", prompt: "Start my workout." },
        customerDigest: {
          schedule: "every day at 09:00",
          timezone: "America/New_York",
          metadata: { workflowName: "customer-digest" },
          retry: { maxAttempts: 3 },
          handler: async ({ idempotencyKey, scheduledFor, scheduleKind, timezone }) => {
            this.env.DIGEST_WORKFLOW.create({ id: idempotencyKey, params: { scheduledFor, scheduleKind, timezone } });
          },
        },
      };
    }
  }
  const env = { AI: scriptedModel(() => "Up!"), DIGEST_WORKFLOW: { create: (run: object) => void created.push(run) } };
  const host = createHost({ agents: { Assistant }, storage: memoryStorage(), env, clock });
  onTestFinished(() => host.stop());
  const agent = host.getAgentByName(Assistant, "one");
  await agent.getHistory();
  await clock.advance(24 * 60 * 60 * 1000);
  await expect.poll(() => created.length).toBe(1);
  expect(created).toMatchObject([{ params: { timezone: "America/New_York" } }]);
  await expect.poll(async () => (await agent.getHistory()).map(textOf)).toContain("Start my workout.");
  await agent.internal_reconcileScheduledTasks();
});
