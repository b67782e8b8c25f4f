import { errorText, PerdureError } from "../base/error.ts";
import { checkTasks } from "../work/tasks.ts";
import { type TaskHooks, Tasks } from "../work/tasks.ts";
import type { ScheduledTaskContext, ScheduledTasks } from "../work/task-types.ts";
import type { Work } from "../work/work.ts";
import type { DeliverTo } from "../store/delivery.ts";
import { taskTable } from "../store/task.ts";
import { submitMessages } from "../turn/intake/submissions.ts";
import type { AgentPart } from "./part.ts";
import type { AgentParts } from "./agent-parts.ts";
import type { ChatParts } from "./chat-parts.ts";

/** After `getScheduledTasks()` has thrown at the start, how long until it is asked again. */
const ASK_AGAIN_MS = 60_000;

/** What a class says of its tasks. */
export interface TaskPolicy {
  getScheduledTasks(): ScheduledTasks | Promise<ScheduledTasks>;
  getDefaultTimezone(): string | undefined;
}

/** Joins scheduled tasks to their agent. An agent without tasks has no rows of them and is not asked for their times. */
export class TasksPart implements AgentPart, TaskHooks {
  readonly #own: AgentParts<unknown>;
  readonly #chat: ChatParts;
  readonly #agent: TaskPolicy;
  readonly #base: TaskPolicy;
  #tasks: Tasks | undefined;
  #reconciled: Promise<void> = Promise.resolve();
  /** The tasks could not be read: when they are asked for again. */
  #askAt: number | null = null;
  #unread: unknown;

  /** @param base declares no tasks: a class that has its method is not asked. */
  constructor(own: AgentParts<unknown>, chat: ChatParts, agent: TaskPolicy, base: TaskPolicy) {
    this.#own = own;
    this.#chat = chat;
    this.#agent = agent;
    this.#base = base;
  }

  get work(): Work | undefined {
    return this.#askAt === null ? this.#tasks : this.#askAgain;
  }

  started(): void | Promise<void> {
    if (this.#agent.getScheduledTasks !== this.#base.getScheduledTasks || this.#isStored()) return this.#ask();
  }

  /** A task needs its declaration to run: until that can be read, those that are stored wait. */
  async #ask(): Promise<void> {
    const { host } = this.#own;
    try {
      await this.reconcile();
    } catch (thrown) {
      if (thrown !== this.#unread) throw thrown;
      host.emit("task:unread", { error: errorText(thrown) });
      this.failed(thrown);
      this.#askAt = host.clock.now() + ASK_AGAIN_MS;
      this.#own.rearm();
    }
  }

  readonly #askAgain: Work = {
    next: () => this.#askAt,
    active: () => false,
    runDue: () => {
      const { host } = this.#own;
      if (this.#askAt === null || this.#askAt > host.clock.now() || this.#own.draining) return;
      this.#askAt = null;
      void host.keepAwake(this.#ask().catch((thrown: unknown) => this.failed(thrown)));
    },
    halt: () => (this.#askAt = null),
  };

  halt(reason: unknown): void {
    this.#tasks?.halt(reason);
  }

  /** Reads the tasks and brings rows in line, one call at a time. @throws PerdureError `bad_config`: nothing has changed then. */
  reconcile(): Promise<void> {
    const done = this.#reconciled.then(() => this.#reconcile());
    this.#reconciled = done.catch(() => undefined);
    return done;
  }

  async #reconcile(): Promise<void> {
    const declared = await this.#read();
    const tasks = checkTasks(declared, {
      timeZone: () => this.as(() => this.#agent.getDefaultTimezone()),
      retry: this.#own.retry,
    });
    const { host } = this.#own;
    const looked = this.#lookWhere(tasks);
    // A child asks its root, which may be starting, and wait for this child to start.
    if (host.path.length === 1) await looked;
    else void host.keepAwake(looked.catch((thrown: unknown) => this.#own.draining || this.failed(thrown)));
    if (tasks.size === 0 && this.#tasks === undefined && !this.#isStored()) return;
    this.#tasks ??= new Tasks(this.#own, this);
    this.#tasks.reconcile(tasks);
    this.#askAt = null;
  }

  /** @throws PerdureError `bad_config` for a messenger that there is not */
  async #lookWhere(tasks: ReturnType<typeof checkTasks>): Promise<void> {
    for (const { id, action } of tasks.values()) {
      const place = action.kind === "prompt" ? action.deliverTo : undefined;
      const why = place && (await this.#chat.whyNowhere(place));
      if (why !== undefined) throw new PerdureError("bad_config", `Scheduled task "${id}": ${why}`);
    }
  }

  async #read(): Promise<ScheduledTasks> {
    try {
      return await this.as(() => this.#agent.getScheduledTasks());
    } catch (thrown) {
      const why = `getScheduledTasks() threw, and the tasks were left as they are: ${errorText(thrown)}`;
      throw (this.#unread = new PerdureError("bad_config", why, { cause: thrown }));
    }
  }

  #isStored(): boolean {
    return !this.#own.host.blank && taskTable.waiting(this.#own.host, 1).length > 0;
  }

  // What tasks ask of the agent

  as<T>(work: () => T): T {
    return this.#chat.as(work);
  }

  accept(prompt: string, occurrence: ScheduledTaskContext, deliverTo: DeliverTo | undefined): void {
    const { taskId, scheduledFor, schedule, timezone, metadata, occurrenceKey } = occurrence;
    try {
      submitMessages(this.#chat.chat, prompt, {
        idempotencyKey: `task:${occurrenceKey}`,
        metadata: { taskId, scheduledFor, schedule, timezone, metadata },
        ...(deliverTo !== undefined && { deliverTo }),
      });
    } catch (thrown) {
      // The occurrence has its turn already, with other words.
      if (!PerdureError.is(thrown, "conflict")) throw thrown;
    }
  }

  failed(error: unknown): void {
    void this.#own.failed(error, { stage: "scheduled task" });
  }
}
