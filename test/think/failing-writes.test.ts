import type { LanguageModel } from "ai";
import { agentTool, type ChatResponseResult, Think } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { manualClock, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { PerdureError } from "../../src/base/error.ts";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { serverTool } from "./harness.ts";
import { Power, powered } from "./interleave-world.ts";

const WRITES = 16;
const MINUTE = 60_000;

/** A disk that has no room for so many writes from this one on. */
class Weak extends Power {
  #left: number;
  readonly #many: number;
  constructor(first: number, many: number) {
    super();
    this.#left = first;
    this.#many = many;
  }
  override tried<T>(value: T): T {
    this.#left--;
    if (this.#left <= 0 && this.#left > -this.#many) throw new PerdureError("disk_full", "No room.");
    return value;
  }
}

/** One turn on such a disk. @returns how it ended, each time that this was told, and what is still reserved then. */
async function turnOn(disk: Weak): Promise<{ ends: string[]; reserved: number }> {
  const clock = manualClock();
  const model = scriptedModel(() => "words", { clock });
  const ends: string[] = [];
  class Talk extends Think {
    override workspaceTools = false as const;
    override budgets = { agent: { maxTokens: 100_000 } };
    override beforeTurn() {
      return { maxOutputTokens: 40 };
    }
    override getModel(): LanguageModel {
      return model;
    }
    override onChatResponse({ status }: ChatResponseResult): void {
      ends.push(status);
    }
  }
  const storage = powered(memoryStorage(), disk);
  const host = createHost({ agents: { Talk }, storage, clock, log: false, idleMs: 2 * MINUTE });
  const talk = host.getAgentByName(Talk, "a");
  const turn = talk.runTurn({ input: "hello" }).catch(() => undefined);
  await clock.advance(MINUTE);
  await turn;
  const { reservedTokens } = await talk.usage("agent");
  await host.stop();
  return { ends, reserved: reservedTokens };
}

test("whichever two writes of a turn fail, nothing of the budget stays reserved behind its end", async () => {
  for (let first = 1; first <= WRITES; first++) {
    const { reserved } = await turnOn(new Weak(first, 2));
    expect(reserved, `write ${first}`).toBe(0);
  }
});

test("whichever writes of a turn fail, and however many, its end is told once", async () => {
  for (let first = 2; first <= WRITES; first++) {
    for (const many of [1, 2, 3, 4]) {
      const { ends } = await turnOn(new Weak(first, many));
      expect(ends, `${many} writes from ${first} on`).toHaveLength(1);
    }
  }
});

test("a turn that waits for room to store its end is not carried on once somebody has asked anew: no tool runs twice", async () => {
  for (let first = 4; first <= 2 * WRITES; first++) {
    const clock = manualClock();
    const ran: string[] = [];
    const model = scriptedModel(
      ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "put", input: {} }] } : "Done."),
      { clock },
    );
    class Talk extends Think {
      override workspaceTools = false as const;
      override getModel(): LanguageModel {
        return model;
      }
      override getTools() {
        return { put: serverTool((_input, options) => ran.push(String(Reflect.get(options, "idempotencyKey")))) };
      }
    }
    const disk = new Weak(first, 4);
    const host = createHost({ agents: { Talk }, storage: powered(memoryStorage(), disk), clock, log: false });
    const post = (body: object) =>
      host.fetch(new Request("http://host/agents/talk/a/chat", { method: "POST", body: JSON.stringify(body) }));
    const messages = [{ id: "u1", role: "user", parts: [{ type: "text", text: "hello" }] }];
    const asked = post({ messages, requestId: "r1" });
    await clock.advance(1_000);
    const again = post({ messages, trigger: "regenerate-message", requestId: "r2" });
    await clock.advance(MINUTE);
    await Promise.allSettled([asked, again]);
    expect(ran, `4 writes from ${first} on`).toEqual([...new Set(ran)]);
    await host.stop();
  }
});

test("whichever writes of a turn fail, no call stays open in an answer that has failed: who answers it would wait for ever", async () => {
  for (let first = 4; first <= 2 * WRITES; first++) {
    for (const many of [2, 3, 4]) {
      const clock = manualClock();
      const toolCalls = ["put", "pay"].map((toolName) => ({ toolName, input: {}, toolCallId: toolName }));
      const model = scriptedModel(() => ({ toolCalls }), { clock });
      const ends: string[] = [];
      class Talk extends Think {
        override workspaceTools = false as const;
        override getModel(): LanguageModel {
          return model;
        }
        override getTools() {
          return { put: serverTool(() => "put"), pay: serverTool(() => "paid", { needsApproval: true }) };
        }
        override onChatResponse({ status }: ChatResponseResult): void {
          ends.push(status);
        }
        open(): string[] {
          const calls = this.messages.flatMap(toolParts).filter((part) => !isTerminal(part));
          return calls.map(({ toolCallId }) => toolCallId);
        }
      }
      const storage = powered(memoryStorage(), new Weak(first, many));
      const host = createHost({ agents: { Talk }, storage, clock, log: false, idleMs: 2 * MINUTE });
      const talk = host.getAgentByName(Talk, "a");
      const turn = talk.runTurn({ input: "hello" }).catch(() => undefined);
      while (ends.length === 0) await clock.advance(1_000);
      await turn;
      expect(await talk.open(), `${many} writes from ${first} on`).toEqual(ends[0] === "completed" ? ["pay"] : []);
      await host.stop();
    }
  }
});

test("whichever writes fail while a helper works, its run has an end behind the turn that waited for it", async () => {
  for (let first = 8; first <= 2 * WRITES; first++) {
    for (const many of [1, 2, 3]) {
      const clock = manualClock();
      const asks = { toolCalls: [{ toolName: "ask", input: {} }] };
      const model = scriptedModel(({ step }) => (step === 0 ? asks : "Done."), { clock });
      const words = scriptedModel(() => "words", { clock });
      class Helper extends Think {
        override workspaceTools = false as const;
        override getModel(): LanguageModel {
          return words;
        }
      }
      class Talk extends Think {
        override workspaceTools = false as const;
        override getModel(): LanguageModel {
          return model;
        }
        override getTools() {
          return { ask: agentTool(Helper, { description: "Have it done.", inputSchema: z.object({}) }) };
        }
      }
      const storage = powered(memoryStorage(), new Weak(first, many));
      const host = createHost({ agents: { Talk, Helper }, storage, clock, log: false, idleMs: 60 * MINUTE });
      const talk = host.getAgentByName(Talk, "a");
      let isOver = false;
      const turn = talk.runTurn({ input: "hello" }).catch(() => undefined);
      void turn.then(() => (isOver = true));
      while (!isOver) await clock.advance(1_000);
      const ends = (await talk.listAgentToolRuns()).map(({ status }) => status);
      expect(ends, `${many} writes from ${first} on`).not.toContain("running");
      await host.stop();
    }
  }
});
