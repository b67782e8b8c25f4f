import { getCurrentAgent, type Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

type Worker = Think & { work(): Promise<void> };

test.each<[string, (agent: Worker) => unknown]>([
  ["queued", (agent) => agent.queue("work")],
  ["scheduled", (agent) => agent.schedule(0, "work")],
  ["scheduled again and again", (agent) => agent.scheduleEvery(0.02, "work")],
  ["spawned as a fiber", (agent) => agent.spawnFiber("work")],
  ["started as a fiber", (agent) => agent.startFiber("work", () => agent.work())],
])("what a tool has %s runs in no turn, and may run one", async (_name, begin) => {
  const seen: unknown[] = [];
  const model = scriptedModel(({ userText, step }) =>
    userText === "Begin." && step === 0 ? { toolCalls: [{ toolName: "begin", input: {} }] } : `answer to ${userText}`,
  );
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { begin: serverTool(async () => void (await begin(this))) };
        }
        async work() {
          const { agent, turn } = getCurrentAgent();
          if (seen.length > 0) return;
          seen.push([agent === this, turn]);
          await this.runTurn({ input: "From the work." });
        }
      },
  );
  await kit.ask("Begin.");
  await expect.poll(async () => (await kit.stored()).map(textIn)).toContain("answer to From the work.");
  expect(seen).toEqual([[true, undefined]]);
  for (const { id } of (await kit.agent()).listSchedules()) await (await kit.agent()).cancelSchedule(id);
  await kit.stable();
});

test("what a tool waits for is in its turn, a fiber too", async () => {
  const model = scriptedModel(({ step }) => (step === 0 ? { toolCalls: [{ toolName: "begin", input: {} }] } : "done"));
  const turns: unknown[] = [];
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          const look = () => void turns.push(getCurrentAgent().turn);
          return {
            begin: serverTool(async () => {
              look();
              await this.runFiber("inside", look);
              await this.startFiber("waited for", look, { waitForCompletion: true });
            }),
          };
        }
      },
  );
  const { requestId } = await kit.ask("Begin.");
  expect(turns).toEqual([requestId, requestId, requestId]);
});

test("what goes on after its turn runs in no turn, and may run one", async () => {
  const model = scriptedModel(({ userText, step }) =>
    userText === "Begin." && step === 0 ? { toolCalls: [{ toolName: "begin", input: {} }] } : `answer to ${userText}`,
  );
  const early: unknown[] = [];
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        over = Promise.withResolvers<void>();
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            begin: serverTool(async () => {
              await this.runTurn({ input: "Too early." }).catch((error: unknown) => early.push(error));
              void this.over.promise.then(() => this.runTurn({ input: "Later." }));
            }),
          };
        }
        override onChatResponse() {
          this.over.resolve();
        }
      },
  );
  await kit.ask("Begin.");
  await expect.poll(async () => (await kit.stored()).map(textIn)).toContain("answer to Later.");
  expect(early).toMatchObject([{ code: "bad_state" }]);
  await kit.stable();
});
