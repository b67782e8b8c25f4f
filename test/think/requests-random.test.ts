import type { AgentHost, Session } from "perdure";
import { type ScriptedCall, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { isSummary, long } from "../context/compacting.ts";
import { seedCount } from "../support/seed-count.ts";
import { type Random, seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import { openThink, refusal, serverTool } from "./harness.ts";
import { asHanded, handed, rowsOf, shownRequests } from "./request-kit.ts";

/** Turns of one agent. */
const TURNS = 50;
/** 20 × 50 = 1,000 turns, where all of them are played. */
const SEEDS = seedCount(20, 2);

/** One agent with everything that decides what a model is sent. */
async function open(random: Random) {
  const gates: PromiseWithResolvers<void>[] = [];
  let isHeld = false;
  const ids = { next: 0 };
  const call = (toolName: string, input: object = {}) => ({ toolName, input, toolCallId: `c${ids.next++}` });
  const answer = async ({ step }: ScriptedCall) => {
    if (isHeld) {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
    }
    const what = random(10);
    if (what === 0 && step < 6) throw refusal(503, "busy", { "retry-after-ms": "1" });
    if (what > 5 || step > 4) return { text: ["Yes, ", long("so it is.", random(60))], reasoning: "Hm." };
    const calls = [call("look"), call("show", { n: step }), call("fail"), call("long"), call("remember", { n: 1 })];
    return { text: "Let me see.", toolCalls: calls.slice(random(3), 3 + random(3)) };
  };
  const ports: AgentHost[] = [];
  const model = scriptedModel((given) => (isSummary(given) ? "## Goal\nGo on." : answer(given)));
  let looks = 0;
  const kit = await openThink(
    (Base) =>
      class extends Base {
        constructor(host: AgentHost) {
          super(host);
          ports.push(host);
        }
        override messageConcurrency = "steer" as const;
        override maxSteps = 8;
        override modelLimits = { "scripted/*": { window: 100_000, input: 3_000 } };
        override contextOverflow = { background: random(2) === 0 };
        override getModel() {
          return model;
        }
        override getSystemPrompt() {
          return "You help.";
        }
        override configureSession(session: Session) {
          return session.withContext("memory", { description: "What to keep in mind." });
        }
        override getTools() {
          return {
            look: serverTool(() => ({ looks: ++looks, at: [1, 2, { b: 1, a: 2 }] }), { description: "Looks." }),
            show: serverTool(({ n }) => `shown ${String(n)}`, {
              toModelOutput: ({ output }) => ({ type: "text", value: `For the model: ${String(output)}, ${looks}` }),
            }),
            fail: serverTool(() => {
              throw new Error("No such thing.");
            }),
            long: serverTool(() => long("word", 900)),
            remember: serverTool(() => "kept", { needsApproval: () => random(3) === 0 }),
          };
        }
      },
  );
  const hold = () => (isHeld = true);
  const release = () => {
    isHeld = false;
    for (const gate of gates.splice(0)) gate.resolve();
  };
  return Object.assign(kit, { model, hold, release, held: () => gates.length, port: () => rowsOf(ports.at(-1)) });
}

test.each(Array.from({ length: SEEDS }, (_, i) => i))(
  "every request is shown exactly as it was sent, seed %i",
  async (seed) => {
    const random = seeded(seed + 1);
    const kit = await open(random);
    let client = await kit.connect();
    let sent = 0;
    const say = (text = long(`question ${sent}`, random(80))) => {
      const id = `r${seed}-${++sent}`;
      client.request(id, [user(`u${sent}`, text)], { trigger: "submit-message" });
      return id;
    };
    const settle = async () => {
      await client.flushed();
      for (let tries = 0; tries < 20; tries++) {
        await kit.stable();
        const agent = await kit.agent();
        const open = agent.pendingApprovals();
        if (open.length === 0) return;
        for (const { toolCallId } of open) client.approve(toolCallId, random(2) === 0);
        await client.flushed();
        const known = new Set(open.map(({ toolCallId }) => toolCallId));
        await until(() => agent.pendingApprovals().every(({ toolCallId }) => !known.has(toolCallId)), "answers");
      }
    };
    const agentOf = () => kit.agent();
    for (let turn = 0; turn < TURNS; turn++) {
      const what = random(12);
      if (what < 3) {
        // Steered: it is said while the model is asked.
        kit.hold();
        say();
        await until(() => kit.held() > 0);
        say("And this, by the way.");
        await client.flushed();
        kit.release();
      } else if (what < 5) {
        // Cut off, and carried on in another life.
        kit.hold();
        say();
        await until(() => kit.held() > 0);
        await kit.nextLife();
        kit.release();
      } else if (what === 5) {
        say();
        await settle();
        // It may be too short for that.
        await (await agentOf()).compact().catch(() => {});
      } else if (what === 6) {
        say();
        await settle();
        await kit.restart();
        client = await kit.connect();
      } else if (what === 7) {
        const id = say();
        await client.flushed();
        client.cancel(id);
      } else say();
      await settle();
    }
    kit.takeErrors();
    const port = kit.port();
    const requests = await shownRequests(port);
    const wrong = requests.filter(({ proof }) => proof !== "exact");
    expect(wrong.map(({ proof, changed, step, call }) => [proof, changed, step, call])).toEqual([]);
    expect(requests.length).toBeGreaterThan(TURNS);
    // What is shown, handed on, is what the model was handed.
    const made = new Set(kit.model.calls.filter((one) => !isSummary(one)).map(handed));
    for (const request of requests)
      expect(made.has(await asHanded(request)), `${request.call} ${request.step}`).toBe(true);
    const sizes = port.sql<{ bytes: number }>(
      "SELECT length(request_digest) + length(frame) + length(request) AS bytes FROM perdure_usage WHERE purpose = 'turn'",
    );
    const mean = sizes.reduce((sum, { bytes }) => sum + bytes, 0) / sizes.length;
    expect(mean).toBeLessThan(200);
    const kinds = port.sql<{ kind: string }>("SELECT DISTINCT kind FROM perdure_compaction WHERE status = 'done'");
    expect(kinds.length).toBeGreaterThan(0);
    if (process.env.PERDURE_SHOW === "1") console.log(seed, requests.length, mean, kinds);
  },
);
