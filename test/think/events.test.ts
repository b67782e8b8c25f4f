import type { AgentEvent } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { user } from "../chat/client.ts";
import { until } from "../support/until.ts";
import { openThink, refusal, serverTool } from "./harness.ts";

const SECRET = "hunter2-is-the-password";

/** What is told of turns, steps, calls and tools, without what chance and time decide. */
function listen() {
  const events: AgentEvent[] = [];
  onTestFinished(subscribe("*", (event) => events.push(event)));
  const told = () =>
    events
      .filter(({ type }) => /^(?:turn|step|call|tool):/.test(type))
      .map(({ type, payload }) => {
        const { requestId, status, outcome, step, attempt, toolName, decision, ok } = payload as Record<
          string,
          unknown
        >;
        const facts = [requestId, status, outcome, step, attempt, toolName, decision, ok];
        return [type, ...facts.filter((fact) => fact !== undefined)].join(" ");
      });
  return { events, told };
}

const payThenSay: Script = ({ step }) => {
  if (step === 0)
    return {
      text: SECRET,
      toolCalls: [
        { toolName: "look", input: { where: SECRET }, toolCallId: "c1" },
        { toolName: "fail", input: {}, toolCallId: "c2" },
        { toolName: "pay", input: { amount: 5, key: SECRET }, toolCallId: "c3" },
      ],
    };
  return { text: `Paid with ${SECRET}.`, usage: { inputTokens: 20, outputTokens: 3 } };
};

async function open(script: Script) {
  const model = scriptedModel(script);
  return openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getSystemPrompt() {
          return `You know ${SECRET}.`;
        }
        override getTools() {
          return {
            look: serverTool(() => ({ found: SECRET })),
            fail: serverTool(() => {
              throw new Error(SECRET);
            }),
            pay: serverTool(() => "paid", { needsApproval: true }),
          };
        }
      },
  );
}

test("a turn with tools and a person's answer is told from its acceptance to its end, and nothing that was said with it", async () => {
  const { events, told } = listen();
  const kit = await open(payThenSay);
  const client = await kit.connect();
  client.request("r1", [user("u1", `Pay with ${SECRET}.`)]);
  await client.done("r1");
  const first = [
    ...["turn:accepted r1", "turn:started r1 1", "call:reserved r1 0 1", "step:started r1 0", "call:settled r1 ok 0 1"],
    ...["tool:asked r1 pay", "tool:started r1 1 look", "tool:started r1 1 fail"],
    ...["tool:settled r1 look true", "tool:settled r1 fail false", "step:settled r1 0", "turn:settled r1 completed"],
  ];
  expect(told().toSorted()).toEqual(first.toSorted());
  expect(told()[0]).toBe(first[0]);
  expect(told().at(-1)).toBe(first.at(-1));
  events.length = 0;
  client.approve("c3", true);
  await until(() => told().some((line) => line.startsWith("turn:settled")));
  const requestId = events.find(({ type }) => type === "turn:started")?.payload as { requestId: string };
  expect(
    told()
      .map((line) => line.replace(requestId.requestId, "it"))
      .toSorted(),
  ).toEqual(
    [
      ...["tool:answered pay approved", "turn:accepted it", "turn:started it 1", "tool:started it 1 pay"],
      ...["tool:settled it pay true", "call:reserved it 0 1", "step:started it 0", "call:settled it ok 0 1"],
      ...["step:settled it 0", "turn:settled it completed"],
    ].toSorted(),
  );
  const settled = events.find(({ type }) => type === "call:settled");
  expect(settled?.payload).toMatchObject({ purpose: "turn", model: "scripted/scripted", tokens: 23, usd: null });
  expect(events.some(({ type }) => type === "gate:waited")).toBe(true);
  expect(JSON.stringify(events)).not.toContain(SECRET);
});

test("a call that is refused and made again is two calls of one step, and a failed turn is settled", async () => {
  const { told } = listen();
  const answers = [refusal(400), refusal(401)];
  const kit = await open(() => {
    throw answers.shift() ?? refusal(400);
  });
  const { requestId } = await kit.ask("Hello");
  expect(told().map((line) => line.replace(requestId, "it"))).toEqual([
    ...["turn:accepted it", "turn:started it 1", "call:reserved it 0 1", "step:started it 0"],
    ...["call:settled it error 0 1", "turn:settled it error"],
  ]);
});

test("what is rolled back is not told, and a turn that never runs is settled all the same", async () => {
  const { told } = listen();
  const answer = Promise.withResolvers<string>();
  const kit = await open(() => answer.promise);
  const agent = await kit.agent();
  let submitted: Promise<unknown> | undefined;
  expect(() =>
    agent.transaction(() => {
      submitted = agent.submitMessages("lost").catch(() => {});
      throw new Error("No.");
    }),
  ).toThrow("No.");
  await submitted;
  expect(told()).toEqual([]);
  const client = await kit.connect();
  client.request("r1", [user("u1", "First.")]);
  await until(() => told().some((line) => line.startsWith("step:started")));
  client.request("r2", [user("u1", "First."), user("u2", "Second.")]);
  await until(() => told().includes("turn:accepted r2"));
  client.cancel("r2");
  await until(() => told().includes("turn:settled r2 aborted"));
  expect(told().filter((line) => line.includes("r2"))).toEqual(["turn:accepted r2", "turn:settled r2 aborted"]);
  answer.resolve("Hello.");
  await client.done("r1");
});
