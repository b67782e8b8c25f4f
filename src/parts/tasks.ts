import { errorText, PerdureError } from "../base/error.ts";
import { checkTasks } from "../work/task-check.ts";
import { type TaskHooks, Tasks } from "../work/tasks.ts";
import type { ScheduledTaskContext, ScheduledTasks } from "../work/task-types.ts";
import type { Work } from "../work/work.ts";
import { newId } from "../base/id.ts";
import type { DeliverTo } from "../store/delivery.ts";
import { taskTable } from "../store/task.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { submitMessages } from "../turn/intake/submissions.ts";
import type { AgentPart } from "./part.ts";
import type { AgentParts } from "./agent-parts.ts";

/** After `getScheduledTasks()` has thrown at the start, how long until it is asked again. */
const ASK_AGAIN_MS = 60_000;

/** What an agent says of its tasks. */
interface TaskDeclarer {
  /** False: the class declares none, and need not be asked. */
  declares(): boolean;
  tasks(): ScheduledTasks | Promise<ScheduledTasks>;
  timeZone(): string | undefined;
  /** Runs `work` as the agent. */
  as<T>(work: () => T): T;
  chat(): Conversations;
  /** For `onError`. Must not throw. */
  failed(error: unknown): void;
}

/** Joins scheduled tasks to their agent. An agent without tasks has no rows of them and is not asked for their times. */
export class TasksPart implements AgentPart {
  readonly #own: AgentParts<unknown>;
  readonly #declarer: TaskDeclarer;
  #tasks: Tasks | undefined;
  #reconciled: Promise<void> = Promise.resolve();
  /** The tasks could not be read: when they are asked for again. */
  #askAt: number | null = null;
  #unread: unknown;

  constructor(own: AgentParts<unknown>, declarer: TaskDeclarer) {
    this.#own = own;
    this.#declarer = declarer;
  }

  get work(): Work | undefined {
    return this.#askAt === null ? this.#tasks : this.#askAgain;
  }

  started(): void | Promise<void> {
    if (this.#declarer.declares() || this.#isStored()) return this.#ask();
  }

  /** A task needs its declaration to run: until that can be read, those that are stored wait. */
  async #ask(): Promise<void> {
    const { host } = this.#own;
    try {
      await this.reconcile();
    } catch (thrown) {
      if (thrown !== this.#unread) throw thrown;
      host.emit("task:unread", { error: errorText(thrown) });
      this.#declarer.failed(thrown);
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
      void host.keepAwake(this.#ask().catch((thrown: unknown) => this.#declarer.failed(thrown)));
    },
    halt: () => (this.#askAt = null),
  };

  halt(reason: unknown): void {
    this.#tasks?.halt(reason);
  }

  /**
   * Asks for the tasks and brings the rows in line. One after the other: what was read last is what holds.
   * @throws PerdureError `bad_config` when a task cannot work or they could not be read. Nothing has changed then.
   */
  reconcile(): Promise<void> {
    const done = this.#reconciled.then(() => this.#reconcile());
    this.#reconciled = done.catch(() => undefined);
    return done;
  }

  async #reconcile(): Promise<void> {
    const declared = await this.#read();
    const tasks = checkTasks(declared, {
      timeZone: () => this.#declarer.as(() => this.#declarer.timeZone()),
      retry: this.#own.retry,
    });
    if (tasks.size === 0 && this.#tasks === undefined && !this.#isStored()) return;
    this.#tasks ??= new Tasks(this.#own, this.#hooks());
    this.#tasks.reconcile(tasks);
    this.#askAt = null;
  }

  async #read(): Promise<ScheduledTasks> {
    try {
      return await this.#declarer.as(() => this.#declarer.tasks());
    } catch (thrown) {
      const why = `getScheduledTasks() threw, and the tasks were left as they are: ${errorText(thrown)}`;
      throw (this.#unread = new PerdureError("bad_config", why, { cause: thrown }));
    }
  }

  #isStored(): boolean {
    return !this.#own.host.blank && taskTable.waiting(this.#own.host, 1).length > 0;
  }

  #hooks(): TaskHooks {
    const declarer = this.#declarer;
    return {
      agentId: this.#own.host.id,
      as: (work) => declarer.as(work),
      accept: (prompt, occurrence, deliverTo) => acceptPrompt(declarer.chat(), prompt, occurrence, deliverTo),
      failed: (error) => declarer.failed(error),
    };
  }
}

function acceptPrompt(
  chat: Conversations,
  prompt: string,
  occurrence: ScheduledTaskContext,
  deliverTo: DeliverTo | undefined,
): void {
  const { taskId, scheduledFor, schedule, timezone, metadata, occurrenceKey } = occurrence;
  const message = { id: newId("msg"), role: "user" as const, parts: [{ type: "text" as const, text: prompt }] };
  try {
    submitMessages(chat, [message], {
      idempotencyKey: `task:${occurrenceKey}`,
      metadata: { taskId, scheduledFor, schedule, timezone, metadata },
      ...(deliverTo !== undefined && { deliverTo }),
    });
  } catch (thrown) {
    // The occurrence has its turn already, with other words.
    if (!PerdureError.is(thrown, "conflict")) throw thrown;
  }
}
