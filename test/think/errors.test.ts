import type { LanguageModel } from "ai";
import type { ChatTurnOptions, ChatClassifyContext, ChatErrorClassification, ChatErrorContext, Think } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { chunksOf, textIn, user } from "../chat/client.ts";
import { openThink, refusal, sent, serverTool } from "./harness.ts";

interface Setup {
  readonly models: readonly LanguageModel[];
  readonly told?: (error: unknown, context: ChatErrorContext) => unknown;
  readonly classify?: (error: unknown, context: ChatClassifyContext) => ChatErrorClassification | undefined;
  readonly settings?: Partial<Pick<Think, "chatRecovery" | "chatStreamStallTimeoutMs">>;
}

/** An agent on a manual clock, and what its `onChatError` was told. */
async function failing({ models, told = (error) => error, classify, settings }: Setup) {
  const contexts: ChatErrorContext[] = [];
  const kit = await openThink(
    (Base) => {
      class Talk extends Base {
        override getModel() {
          return models;
        }
        override getTools() {
          return { look: serverTool(() => "a boat") };
        }
        override onChatError(error: unknown, context: ChatErrorContext) {
          contexts.push(context);
          return told(error, context);
        }
        override classifyChatError(error: unknown, context: ChatClassifyContext) {
          return classify?.(error, context);
        }
      }
      return Talk;
    },
    { manual: true },
  );
  Object.assign(await kit.agent(), settings);
  return Object.assign(kit, { contexts });
}

/** Waits for the call, then for the timer of the next try. */
async function tried(models: readonly ScriptedModel[], calls: number): Promise<void> {
  await expect.poll(() => models.reduce((sum, { calls: made }) => sum + made.length, 0)).toBe(calls);
}

test("a rate limit is waited out for as long as the provider asks, not shorter", async () => {
  const model = scriptedModel([{ error: refusal(429, "slow down", { "retry-after": "7" }) }, "at last"]);
  const kit = await failing({ models: [model] });
  const turn = kit.ask("Hi.");
  await tried([model], 1);
  await kit.clock.advance(6_999);
  await tried([model], 1);
  await kit.clock.advance(1);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("at last");
  expect((await kit.agent()).listUsage()).toMatchObject([
    { status: "ok", attempt: 2 },
    { status: "error", attempt: 1, errorClass: "rate_limit", retryAfterMs: 7000, tokens: 0 },
  ]);
  expect(kit.contexts).toEqual([]);
});

test("a provider that asks for too long a wait is left for the next model at once", async () => {
  const first = scriptedModel([{ error: refusal(429, "slow down", { "retry-after": "3600" }) }]);
  const second = scriptedModel(["from the second"]);
  const kit = await failing({ models: [first, second] });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("from the second");
});

test("trouble that passes is tried again with growing waits, then the next model is taken", async () => {
  const first = scriptedModel(() => ({ error: refusal(503) }));
  const second = scriptedModel(["from the second"]);
  const kit = await failing({ models: [first, second] });
  const turn = kit.ask("Hi.");
  await tried([first], 1);
  await kit.clock.advance(1000);
  await tried([first], 2);
  await kit.clock.advance(1999);
  await tried([first], 2);
  await kit.clock.advance(1);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(first.calls).toHaveLength(3);
  expect(textIn(await kit.last())).toBe("from the second");
});

test.each<[string, number, string]>([
  ["fatal", 401, "API key"],
  ["context_overflow", 413, "longer than the model can read"],
])("%s errors are not tried again", async (classification, status, words) => {
  const model = scriptedModel(() => ({ error: refusal(status) }));
  const kit = await failing({ models: [model] });
  const end = await kit.ask("Hi.");
  expect(end.status).toBe("error");
  expect(end.error).toContain(words);
  expect(model.calls).toHaveLength(1);
  expect(kit.contexts).toMatchObject([
    { stage: "stream", classification, messagesPersisted: true, partial: undefined },
  ]);
});

test("when all models are used up, the user reads what to do, and the next message works", async () => {
  const first = scriptedModel([{ error: refusal(401) }, "well again"]);
  const second = scriptedModel([{ error: refusal(404) }]);
  const kit = await failing({ models: [first, second] });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")]);
  const end = await client.done("r1");
  expect(end).toMatchObject({ error: true });
  expect(end.body).toContain("does not know this model");
  expect(kit.contexts).toMatchObject([{ requestId: "r1", classification: "fatal" }]);
  expect(await kit.ask("Again.")).toMatchObject({ status: "completed" });
  expect((await kit.stored()).map(textIn)).toEqual(["Hi.", "Again.", "well again"]);
});

test("an error in the middle keeps what was said; the next model goes on behind it", async () => {
  const first = scriptedModel([{ text: ["One, ", "two, "], error: refusal(400), errorAfter: 2 }]);
  const second = scriptedModel(["three."]);
  const kit = await failing({ models: [first, second] });
  await kit.ask("Count.");
  expect(textIn(await kit.last())).toBe("One, two, three.");
  expect(sent(second, 0).join()).toContain("One, two, ");
});

test("an error in the middle that ends the turn leaves the part that came, and onChatError sees it", async () => {
  const model = scriptedModel([{ text: "One, ", error: refusal(400), errorAfter: 1 }, "next"]);
  const kit = await failing({ models: [model] });
  expect(await kit.ask("Count.")).toMatchObject({ status: "error" });
  expect(textIn(await kit.last())).toBe("One, ");
  expect(textIn(kit.contexts[0]?.partial)).toBe("One, ");
  expect(kit.responses).toMatchObject([{ status: "error", message: { role: "assistant" } }]);
});

test.each<[string, unknown, string]>([
  ["a text", "Please call us.", "Please call us."],
  ["another error", new Error("Our words."), "Our words."],
])("what onChatError returns is what the user reads: %s", async (_name, returned, read) => {
  const model = scriptedModel([{ error: refusal(401) }]);
  const kit = await failing({ models: [model], told: () => returned });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ error: true, body: read });
  expect(chunksOf(client.of("r1")).filter(({ type }) => type === "error")).toEqual([]);
});

test("an onChatError that throws costs nothing but its words", async () => {
  const model = scriptedModel([{ error: refusal(401) }]);
  const kit = await failing({
    models: [model],
    told: () => {
      throw new Error("broken");
    },
  });
  expect((await kit.ask("Hi.")).error).toContain("API key");
  expect(kit.takeErrors()).toEqual(["broken"]);
});

test("stage turn: a setting or a hook failed", async () => {
  const kit = await failing({ models: [] });
  const end = await kit.ask("Hi.");
  expect(end.status).toBe("error");
  expect(end.error).toContain("no model");
  expect(kit.contexts).toMatchObject([{ stage: "turn", classification: undefined }]);
});

test("stage recovery: a turn that is not carried on any more", async () => {
  const model = scriptedModel(() => ({ text: "half", hang: true }));
  const kit = await failing({
    models: [model],
    told: (error, { stage }) => (stage === "recovery" ? `Sorry: ${(error as Error).message}` : error),
    settings: { chatRecovery: { maxAttempts: 1, terminalMessage: "We gave up." }, chatStreamStallTimeoutMs: 1000 },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  for (let attempt = 1; attempt <= 2; attempt++) {
    await tried([model], attempt);
    if (attempt === 1) await client.said("r1", "half");
    await kit.clock.advance(1000);
  }
  expect(await client.done("r1")).toMatchObject({ error: true, body: "Sorry: We gave up." });
  expect(kit.contexts).toMatchObject([{ stage: "recovery", requestId: "r1" }]);
  expect(textIn(kit.contexts[0]?.partial)).toBe("half");
});

test("stage stream: a model that falls silent ends a turn that is not to be carried on, and the event says so", async () => {
  const seen: unknown[] = [];
  onTestFinished(subscribe("chat:stream:stalled", ({ payload }) => void seen.push(payload)));
  const model = scriptedModel(() => ({ text: "half", hang: true }));
  const kit = await failing({
    models: [model],
    settings: { chatRecovery: false, chatStreamStallTimeoutMs: 1000 },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "half");
  await kit.clock.advance(1000);
  expect(await client.done("r1")).toMatchObject({ error: true, body: "The model said nothing for 1000 ms." });
  expect(kit.contexts).toMatchObject([{ stage: "stream", requestId: "r1", messagesPersisted: true }]);
  expect(seen).toEqual([{ requestId: "r1", timeoutMs: 1000 }]);
});

test("stage parse: a request that cannot be read is told to onChatError, and its sender reads what that returns", async () => {
  const seen: unknown[] = [];
  onTestFinished(subscribe("chat:request:failed", ({ payload }) => void seen.push(payload)));
  const kit = await failing({ models: [scriptedModel([])], told: (error) => `No: ${(error as Error).message}` });
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: "none" }]);
  expect(await client.done("r1")).toMatchObject({ error: true, body: expect.stringMatching(/^No: /) as string });
  client.send({ type: "cf_agent_use_chat_request", id: "r2", init: { method: "POST", body: "{" } });
  const said = expect.stringContaining("not JSON") as string;
  expect(await client.done("r2")).toMatchObject({ error: true, body: said });
  const failed = { stage: "parse", messagesPersisted: false };
  expect(kit.contexts).toMatchObject([
    { ...failed, requestId: "r1" },
    { ...failed, requestId: "r2" },
  ]);
  expect(seen).toMatchObject([{ requestId: "r1" }, { requestId: "r2", error: said }]);
  const posted = await fetch(`${kit.url}/chat`, {
    method: "POST",
    body: JSON.stringify({ requestId: "r3", messages: [{ id: "u1", role: "user", parts: "none" }] }),
  });
  expect(posted.status).toBe(400);
  expect(kit.contexts.at(-1)).toMatchObject({ ...failed, requestId: "r3" });
  expect(await kit.stored()).toEqual([]);
});

test("stage persist: messages that cannot be stored", async () => {
  const kit = await failing({ models: [scriptedModel([])] });
  const client = await kit.connect();
  await kit.rows("CREATE TRIGGER perdure_full BEFORE INSERT ON perdure_turn BEGIN SELECT RAISE(ABORT, 'no room'); END");
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ error: true, body: expect.stringContaining("be stored") as string });
  expect(kit.contexts).toMatchObject([{ stage: "persist", requestId: "r1", messagesPersisted: false }]);
  expect(kit.takeErrors()).toEqual([expect.stringContaining("no room")]);
});

test("stage persist: an answer that cannot be stored", async () => {
  const kit = await failing({ models: [scriptedModel(["Hello."])] });
  await kit.agent();
  await kit.rows(
    "CREATE TRIGGER perdure_full BEFORE UPDATE ON perdure_turn WHEN new.status = 'completed' BEGIN SELECT RAISE(ABORT, 'no room'); END",
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "error", error: "Failed to save the response." });
  expect(kit.contexts).toMatchObject([{ stage: "persist", messagesPersisted: true }]);
  expect(kit.takeErrors()).toEqual([expect.stringContaining("no room")]);
});

test("an onChatMessage of one's own has its failures told too", async () => {
  const contexts: ChatErrorContext[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override onChatMessage({ body }: ChatTurnOptions): Response {
          if (body?.throws === true) throw new Error("no such model");
          const error = JSON.stringify({ type: "error", errorText: "cut off" });
          return new Response(`data: ${error}\n\n`, { headers: { "content-type": "text/event-stream" } });
        }
        override onChatError(error: unknown, context: ChatErrorContext) {
          contexts.push(context);
          return `${context.stage}: ${error instanceof Error ? error.message : String(error)}`;
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")], { throws: true });
  expect(await client.done("r1")).toMatchObject({ body: "turn: no such model" });
  client.request("r2", [user("u2")]);
  expect(await client.done("r2")).toMatchObject({ body: "stream: cut off" });
  expect(contexts).toMatchObject([
    { stage: "turn", requestId: "r1", messagesPersisted: true },
    { stage: "stream", requestId: "r2" },
  ]);
  expect(kit.takeErrors()).toEqual(["no such model"]);
});

test("classifyChatError is told which turn failed where", async () => {
  const contexts: ChatClassifyContext[] = [];
  const kit = await failing({
    models: [scriptedModel([{ error: refusal(401) }])],
    classify: (_error, context) => void contexts.push(context) as undefined,
  });
  const { requestId } = await kit.ask("Hi.");
  expect(contexts).toMatchObject([{ stage: "stream", requestId, messagesPersisted: true, classification: undefined }]);
});

test("classifyChatError has the first word on what an error means", async () => {
  const model = scriptedModel([{ error: refusal(401) }, "well"]);
  const kit = await failing({ models: [model], classify: () => "transient" });
  const turn = kit.ask("Hi.");
  await tried([model], 1);
  await kit.clock.advance(1000);
  expect(await turn).toMatchObject({ status: "completed" });
});

test("a classifyChatError that throws ends the turn: an error that nobody can judge is not tried again", async () => {
  const model = scriptedModel([{ error: refusal(503) }]);
  const kit = await failing({
    models: [model],
    classify: () => {
      throw new Error("broken classifier");
    },
  });
  expect(await kit.ask("Hi.")).toMatchObject({
    status: "error",
    error: expect.stringMatching(/^Something went wrong on the server/),
  });
  expect(model.calls).toHaveLength(1);
});

test("failures are told to whoever watches the host", async () => {
  const seen: unknown[] = [];
  for (const type of ["chat:call:failed", "chat:request:failed"] as const)
    onTestFinished(subscribe(type, ({ payload }) => void seen.push([type, payload])));
  const kit = await failing({ models: [scriptedModel([{ error: refusal(401, "no such key") }])] });
  const { requestId } = await kit.ask("Hi.");
  expect(seen).toEqual([
    ["chat:call:failed", { requestId, errorClass: "fatal" }],
    ["chat:request:failed", { requestId, stage: "stream", messagesPersisted: true, error: "no such key" }],
  ]);
});

test("an error of a tool is the tool's result, not the turn's end", async () => {
  const script: Script = ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "gone", input: {} }] } : "I see.");
  const model = scriptedModel(script);
  const kit = await failing({ models: [model] });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("I see.");
  expect(kit.contexts).toEqual([]);
});
