// What was sent to the model once is sent again in the same bytes: providers cache by the beginning of a request.
import { durableTool } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openThink, sent, serverTool, systemOf } from "./harness.ts";

const TURNS = 50;

/** Tool calls, reasoning, failures and long outputs, in an order that depends on the conversation alone. */
const script: Script = ({ turn, step }) => {
  const calls = turn % 4;
  if (step >= calls) return { text: `Answer ${turn}.`, ...(turn % 5 === 0 && { reasoning: "Because." }) };
  const toolName = turn % 3 === 0 ? "fail" : step % 2 === 0 ? "look" : "print";
  return {
    text: `Step ${step}.`,
    toolCalls: [
      { toolName, input: { turn, step }, toolCallId: `c-${turn}-${step}-a` },
      { toolName: "look", input: { turn, step, again: true }, toolCallId: `c-${turn}-${step}-b` },
    ],
  };
};

async function remembering() {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            look: serverTool((input) => ({ seen: input, at: [1.5, null, "ü"] })),
            print: durableTool(
              serverTool(() => "line\n".repeat(500)),
              { maxOutputLines: 20 },
            ),
            fail: serverTool(() => {
              throw new Error("There is mist.");
            }),
          };
        }
      },
  );
  return Object.assign(kit, { model });
}

test("over many turns with tools each request is the beginning of the next one, also across a restart", async () => {
  const kit = await remembering();
  for (let turn = 0; turn < TURNS; turn++) {
    if (turn % 10 === 7) await kit.restart();
    expect(await kit.ask(`Question ${turn}.`)).toMatchObject({ status: "completed" });
  }
  const { calls } = kit.model;
  expect(calls.length).toBeGreaterThan(TURNS);
  for (let n = 1; n < calls.length; n++) {
    const [before, after] = [sent(kit.model, n - 1), sent(kit.model, n)];
    expect(after.length).toBeGreaterThan(before.length);
    expect(after.slice(0, before.length), `call ${n}`).toEqual(before);
    expect(systemOf(kit.model, n)).toBe(systemOf(kit.model, 0));
    expect(JSON.stringify(calls[n]?.tools)).toBe(JSON.stringify(calls[0]?.tools));
  }
  expect(textIn(await kit.last())).toContain(`Answer ${TURNS - 1}.`);
});

test("the same stored state gives the same bytes after a restart", async () => {
  const kit = await remembering();
  for (let turn = 0; turn < 4; turn++) await kit.ask(`Question ${turn}.`);
  const messages = async () => {
    const agent = await kit.agent();
    return JSON.stringify(await agent.assembleContext({ messages: agent.messages, tools: agent.getTools() }));
  };
  const before = await messages();
  await kit.restart();
  expect(await messages()).toBe(before);
});

test("what a hook adds for one step alone leaves the next request as it would have been", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => "a boat") };
        }
        override beforeStep({ stepNumber, messages }: Parameters<InstanceType<typeof Base>["beforeStep"]>[0]) {
          if (stepNumber === 0) return { messages: [...messages, { role: "user" as const, content: "Hurry." }] };
        }
      },
  );
  await kit.ask("Look.");
  await kit.ask("Again.");
  expect(sent(model, 0).join()).toContain("Hurry.");
  expect(sent(model, 1).join()).not.toContain("Hurry.");
  expect(sent(model, 2).slice(0, sent(model, 1).length)).toEqual(sent(model, 1));
});
