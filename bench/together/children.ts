import type { LanguageModel } from "ai";
import { Think } from "perdure";
import { serve } from "perdure/node";
import { mockModel } from "../chat/mock-model.ts";
import { withFolder } from "../foundation/agent.ts";
import { memory, rate, until } from "../foundation/measure.ts";
import type { Figure, Section } from "../foundation/section.ts";

const CHILDREN = 1_000;
const AT_ONCE = 50;
const IDLE_MS = 1_000;
/** Looking costs too: the list has thousands of runs. */
const LOOK_AGAIN_MS = 100;
const PROMPT = "chunks=20 tag=x";
const HELD = "held";

/** A model whose answer to {@link HELD} never comes; it ends when it is told to. */
function model(): LanguageModel {
  const mock = mockModel();
  return {
    ...mock,
    doStream(options: Parameters<typeof mock.doStream>[0]) {
      if (!JSON.stringify(options.prompt).includes(HELD)) return mock.doStream(options);
      return new Promise<never>((_, reject) => {
        options.abortSignal?.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
      });
    },
  } as LanguageModel;
}

class Child extends Think {
  override getModel() {
    return model();
  }

  async answer(text: string): Promise<void> {
    await this.runTurn({ input: text });
  }
}

class Parent extends Think {
  override getModel() {
    return model();
  }

  async start(from: number, count: number, input: string): Promise<void> {
    const runs = Array.from({ length: count }, (_, i) => from + i);
    await Promise.all(runs.map((i) => this.runAgentTool(Child, { input, runId: `${input}-${i}`, detached: true })));
  }

  async wait(from: number, count: number, input: string): Promise<void> {
    const runs = Array.from({ length: count }, (_, i) => from + i);
    await Promise.all(runs.map((i) => this.runAgentTool(Child, { input, runId: `${input}-${i}` })));
  }

  async stopAll(): Promise<void> {
    const open = this.listAgentToolRuns().filter(({ status }) => status === "running");
    await Promise.all(open.map(({ runId }) => this.cancelAgentTool(runId)));
  }

  open(): number {
    return this.listAgentToolRuns().filter(({ status }) => status === "running").length;
  }
}

/** What a thousand children of one parent cost. Rates per second, times in milliseconds, memory in KiB per child. */
export interface ChildrenCosts {
  /** Turns of agents that are nobody's children. */
  readonly alone: number;
  readonly ended: number;
  readonly started: number;
  readonly stoppedMs: number;
  readonly runningKiB: number;
  readonly asleepKiB: number;
}

export function measureChildren(say: (text: string) => void): Promise<ChildrenCosts> {
  return withFolder(async (dir) => {
    const host = await serve({ agents: { Parent, Child }, dir, port: 0, signals: false, idleMs: IDLE_MS });
    const parent = host.getAgentByName(Parent, "one");
    await parent.wait(0, 1, PROMPT);
    const batches = async (work: (from: number) => Promise<unknown>) => {
      for (let from = 0; from < CHILDREN; from += AT_ONCE) await work(from);
    };

    say("children: turns of agents that are nobody's");
    const alone = await rate(CHILDREN, () =>
      batches((from) =>
        Promise.all(
          Array.from({ length: AT_ONCE }, (_, i) => host.getAgentByName(Child, `alone-${from + i}`).answer(PROMPT)),
        ),
      ),
    );
    say("children: runs to their end");
    const ended = await rate(CHILDREN, () => batches((from) => parent.wait(from + 1, AT_ONCE, PROMPT)));
    await until(() => host.status().live === 0);
    const before = await memory();
    say("children: runs that stay open");
    const started = await rate(CHILDREN, () => batches((from) => parent.start(from, AT_ONCE, HELD)));
    const running = await memory();
    say("children: stopping them all");
    const begun = performance.now();
    await parent.stopAll();
    while ((await parent.open()) > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    const stoppedMs = performance.now() - begun;
    await until(() => host.status().live === 0);
    const asleep = await memory();
    await host.stop();
    const each = (after: { heap: number }) => Math.max(0, after.heap - before.heap) / CHILDREN / 1024;
    return { alone, ended, started, stoppedMs, runningKiB: each(running), asleepKiB: each(asleep) };
  });
}

/** A thousand children of one parent at a time: what they cost, and how fast they start and stop. */
export const children: Section = {
  title: "Children of one agent",
  notes: [
    `${CHILDREN.toLocaleString("en-US")} runs of one parent, ${AT_ONCE} asked for at a time. The floor is the same turn of as many agents that are nobody's children.`,
    "A run costs two rows and two commits more than a turn: the parent's and the child's, each at its start and its end.",
    "More agents are at work here than a host keeps databases open (`limits.openDatabases`): most of the time goes into opening and closing them again.",
    "Memory is heap and what hangs on it, per child, after garbage collection.",
  ],
  async run(say) {
    const costs = await measureChildren(say);
    return [
      {
        what: "runs to their end",
        ...{ unit: "runs/s", ours: costs.ended, bare: costs.alone, against: "turns of single agents" },
      },
      { what: "runs started, not waited for", unit: "runs/s", ours: costs.started },
      { what: "all stopped, their ends stored", unit: "ms", ours: costs.stoppedMs },
      { what: "memory of a child that runs, with its run", unit: "KiB", ours: costs.runningKiB },
      { what: "memory of a child that has ended", unit: "KiB", ours: costs.asleepKiB },
    ] satisfies Figure[];
  },
};
