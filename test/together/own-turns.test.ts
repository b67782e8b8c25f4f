// How many turns an agent may ask for itself, on a real host.
import { tool } from "ai";
import { AIChatAgent, Think } from "perdure";
import { subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { startHost, takeFailures, tempDir } from "../clients/harness.ts";
import { PATIENCE_MS, until } from "../support/until.ts";

interface Refusal {
  readonly reason: string;
  readonly depth: number;
  readonly agent: string;
}

/** What was refused while the test ran. */
function refusals(): Refusal[] {
  const heard: Refusal[] = [];
  onTestFinished(subscribe("turn:refused", ({ payload }) => void heard.push(payload)));
  return heard;
}

type Ask = (agent: Asker, times: number) => unknown;

/** An agent whose model calls a tool in each turn; the tool asks for turns. */
class Asker extends Think {
  static ask: Ask = () => undefined;
  static times = 1;
  static model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "again", input: {}, toolCallId: `c${Math.random()}` }] } : "Done.",
  );
  override workspaceTools = false as const;
  override maxOwnTurnDepth = 5;
  override maxOwnTurnsPerHour = 12;
  static override options = { retry: { maxAttempts: 1 } };
  override getModel() {
    return Asker.model;
  }
  override getTools() {
    const execute = async () => {
      await Asker.ask(this, Asker.times);
      return "asked";
    };
    return { again: tool({ description: "Asks again.", inputSchema: z.object({}), execute }) };
  }
  async prompt() {
    await this.submitMessages("again");
  }
  turns() {
    return this.messages.filter(({ role }) => role === "user").length;
  }
  talk(text: string) {
    return this.messages.some(({ parts }) => JSON.stringify(parts).includes(text));
  }
}

const each = (times: number, work: () => Promise<unknown>) => Promise.all(Array.from({ length: times }, work));

const WAYS: Readonly<Record<string, Ask>> = {
  "submitMessages()": (agent, times) => each(times, () => agent.submitMessages("again")),
  "runTurn() that submits": (agent, times) => each(times, () => agent.runTurn({ mode: "submit", input: "again" })),
  "the queue": (agent, times) => each(times, () => agent.queue("prompt")),
  "a schedule": (agent, times) => each(times, () => agent.schedule(0, "prompt", crypto.randomUUID())),
  "a fiber": (agent, times) => each(times, async () => agent.spawnFiber("prompt")),
  "a function that goes on": (agent, times) => each(times, () => agent.startFiber("f", () => agent.prompt())),
  "another agent": async (agent, times) => {
    const other = await agent.subAgent(Relay, "relay");
    await each(times, () => other.pass());
  },
};

class Relay extends Think {
  override getModel() {
    return Asker.model;
  }
  async pass() {
    await this.parentAgent(Asker).prompt();
  }
}

async function play(ask: Ask, times: number) {
  Asker.ask = ask;
  Asker.times = times;
  const heard = refusals();
  const dir = tempDir();
  const host = await startHost({ agents: { Asker, Relay }, dir });
  const agent = host.getAgentByName(Asker, "x");
  await agent.submitMessages("go");
  await until(() => heard.length > 0, "a refusal");
  const open = () => agent.listSubmissions({ status: ["pending", "running"] });
  await expect.poll(open, { timeout: PATIENCE_MS }).toEqual([]);
  takeFailures();
  return { heard, agent, host, dir };
}

test.each(Object.keys(WAYS))("turns that ask for the next one by way of %s end five deep", async (way) => {
  const { heard, agent } = await play(WAYS[way] as Ask, 1);
  expect(heard[0]).toMatchObject({ reason: "depth", depth: 6, agent: "Asker/x" });
  await expect.poll(() => agent.turns(), { timeout: PATIENCE_MS }).toBe(6);
});

test.each(["submitMessages()", "the queue", "another agent"])(
  "turns that each ask for three by way of %s end after twelve; the model reads why",
  async (way) => {
    const { heard, agent } = await play(WAYS[way] as Ask, 3);
    await expect.poll(() => agent.turns(), { timeout: PATIENCE_MS }).toBe(13);
    expect(heard.some(({ reason }) => reason === "count")).toBe(true);
    // Only who asks for a turn in a tool has a model that can read it.
    expect(way !== "submitMessages()" || (await agent.talk("maxOwnTurnsPerHour"))).toBe(true);
    // Somebody who asks begins anew.
    await agent.submitMessages("go");
    await expect.poll(() => agent.turns(), { timeout: PATIENCE_MS }).toBe(26);
    takeFailures();
  },
);

test("AIChatAgent: turns that onChatResponse or onChatMessage asks for are bounded as well", async () => {
  const heard = refusals();
  for (const hook of ["onChatResponse", "onChatMessage"] as const) {
    class Looper extends AIChatAgent {
      override maxOwnTurnDepth = 4;
      asked = 0;
      override async onChatMessage() {
        this.asked++;
        if (hook === "onChatMessage") this.ask();
        return new Response("Hello.");
      }
      override onChatResponse() {
        if (hook === "onChatResponse") this.ask();
      }
      ask() {
        void this.saveMessages([{ id: crypto.randomUUID(), role: "user", parts: [] }]).catch(() => {});
      }
      count() {
        return this.asked;
      }
    }
    const host = await startHost({ agents: { Looper } });
    const before = heard.length;
    await host.getAgentByName(Looper, hook).saveMessages([{ id: "u", role: "user", parts: [] }]);
    await until(() => heard.length > before, "a refusal");
    expect(await host.getAgentByName(Looper, hook).count()).toBe(5);
  }
});

test("what was counted holds over a restart, and a bound that is no number is an error", async () => {
  const { dir, host } = await play(WAYS["submitMessages()"] as Ask, 3);
  await host.stop();
  Asker.ask = () => undefined;
  const again = await startHost({ agents: { Asker, Relay }, dir });
  const agent = again.getAgentByName(Asker, "x");
  const [first] = (await agent.listSubmissions({ limit: 100 })).slice(-1);
  expect(await agent.countOwnTurn(first?.requestId ?? "")).toBe(12);
  expect(await agent.countOwnTurn("another")).toBeUndefined();
  class Odd extends Asker {
    override maxOwnTurnsPerHour = Number.NaN;
  }
  const odd = await startHost({ agents: { Odd } });
  await expect(odd.getAgentByName(Odd, "x").countOwnTurn("t")).rejects.toMatchObject({ code: "bad_config" });
  takeFailures();
});
