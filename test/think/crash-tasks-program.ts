// A Think agent with scheduled tasks that are all due a minute after midnight, for the crash matrix. Time is midnight
// until the driver says otherwise; what it shows then, all later lives know.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { AgentHost, ScheduledTaskContext, ScheduledTasks } from "perdure";
import type { Fact } from "perdure/testing";
import { Think } from "../../src/agent/think.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { countCalls } from "../../src/testing/count-calls.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";

export type TaskCommand =
  | { readonly type: "look"; readonly id: number }
  /** The agent starts, and so arms its tasks. */
  | { readonly type: "wake" }
  /** The tasks are due. */
  | { readonly type: "go" };

/** How things stand when nothing is left to do. */
export interface TaskLook extends Fact {
  readonly tasks: readonly {
    readonly id: string;
    readonly due: number;
    readonly starts: number;
    readonly error: string | null;
  }[];
  readonly texts: readonly string[];
  /** Of submissions. */
  readonly keys: readonly string[];
  /** Rows that handlers wrote. */
  readonly lines: readonly string[];
  /** Keys of what handlers did to the outside. */
  readonly tries: readonly string[];
  readonly calls: number;
}

const MIDNIGHT = Date.UTC(2024, 1, 29);
const DUE = MIDNIGHT + 60_000;
const TICK_MS = 5;
const schedule = "every day at 00:01 in UTC";

const dir = programDir();
const timeFile = join(dir, "time");
const triesFile = join(dir, "tries");
const clock = manualClock(existsSync(timeFile) ? DUE : MIDNIGHT);
// Retries wait for this.
setInterval(() => void clock.advance(TICK_MS), TICK_MS);

const counter = countCalls({ file: join(dir, "calls") });
const model = counter.wrap(scriptedModel(({ userText }) => ({ text: ["Done ", "with ", userText], delayMs: 1 })));

/** What was done outside of the agent, by all lives. */
const tries = (): string[] => (existsSync(triesFile) ? readFileSync(triesFile, "utf8").trimEnd().split("\n") : []);

const pause = () => new Promise((resolve) => setImmediate(resolve));

class Planner extends Think {
  override workspaceTools = false as const;
  readonly #port: AgentHost;

  constructor(port: AgentHost) {
    super(port);
    this.#port = port;
  }

  override getModel() {
    return model;
  }

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS line (task TEXT, key TEXT)`;
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  override getScheduledTasks(): ScheduledTasks {
    const prompts: ScheduledTasks = {
      plain: { schedule, prompt: "Plain" },
      asked: { schedule, prompt: () => pause().then(() => "Asked") },
    };
    const handlers: ScheduledTasks = {
      sync: { schedule, handler: (context) => this.write(context) },
      async: {
        schedule,
        handler: async (context) => {
          this.note(context);
          await pause();
          this.write(context);
        },
      },
      flaky: {
        schedule,
        handler: (context) => {
          this.write(context);
          if (this.note(context) === 0) throw new Error("not at the first try");
        },
      },
      doomed: {
        schedule,
        retry: { maxAttempts: 2, baseDelayMs: 1 },
        handler: (context) => {
          this.write(context);
          throw new Error("never");
        },
      },
    };
    return process.env.TASKS === "prompts" ? prompts : handlers;
  }

  /** Something done to the outside. @returns how often it was done before */
  note({ idempotencyKey }: ScheduledTaskContext): number {
    const before = tries().filter((one) => one === idempotencyKey).length;
    appendFileSync(triesFile, `${idempotencyKey}\n`);
    return before;
  }

  write({ taskId, idempotencyKey }: ScheduledTaskContext): void {
    report({ type: "ran", task: taskId, key: idempotencyKey });
    this.sql`INSERT INTO line VALUES (${taskId}, ${idempotencyKey})`;
  }

  /** Undefined while something is left to do. */
  look(id: number): TaskLook | undefined {
    const tasks = this.#port.sql<TaskLook["tasks"][number]>(
      "SELECT task_id AS id, due - ? AS due, starts, error FROM perdure_task ORDER BY task_id",
      MIDNIGHT,
    );
    if (tasks.length === 0 || tasks.some(({ due }) => due <= DUE - MIDNIGHT)) return undefined;
    if (this.listSubmissions({ status: ["pending", "running"] }).length > 0) return undefined;
    return {
      type: "look",
      id,
      tasks,
      texts: this.messages.map((message) =>
        message.parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
      ),
      keys: this.listSubmissions().map(({ idempotencyKey }) => idempotencyKey ?? ""),
      lines: this.sql`SELECT task, key FROM line ORDER BY rowid`.map(
        ({ task, key }) => `${String(task)} ${String(key)}`,
      ),
      tries: tries(),
      calls: counter.count(),
    };
  }
}

subscribe("task:failed", ({ payload }) => report({ type: "given up", task: payload.taskId }));
subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));

// Lives are killed, so none would leave its compiled modules behind for the next.
flushCompileCache();
const host = createHost({ agents: { Planner }, dir, clock, idleMs: 1e9, onCommit: crashPoint() });

async function look(id: number): Promise<void> {
  const agent = host.getAgentByName(Planner, "one");
  for (;;) {
    const found = await agent.look(id);
    if (found !== undefined) return report({ ...found });
    await delay(TICK_MS);
  }
}

onCommand((message) => {
  const command = message as TaskCommand;
  if (command.type === "look") void look(command.id);
  else if (command.type === "wake") {
    void host
      .getAgentByName(Planner, "one")
      .reconcileScheduledTasks()
      .then(() => report({ type: "armed" }));
  } else {
    writeFileSync(timeFile, "");
    void clock.set(Math.max(clock.now(), DUE));
  }
});
report({ type: "ready" });
