// An agent with fibers of every kind, for the crash matrix. VERSION=2 is a program that has lost a method.
import type { AgentOptions, FiberContext, FiberRecoveryContext, FiberRecoveryResult } from "perdure";
import { createHost } from "../../src/host/node/create-host.ts";
import { report } from "../../src/testing/crash/child.ts";
import { isLaterLife, obey, reportEvents, Watched, watchedOptions } from "./watched-host.ts";

const STEPS = 3;

/** Released by the driver; in a later life nobody would. */
const release = Promise.withResolvers<void>();
if (isLaterLife) release.resolve();

const tick = () => new Promise((resolve) => setImmediate(resolve));

class Runner extends Watched {
  static override options: AgentOptions = { retry: { baseDelayMs: 500, maxDelayMs: 500 } };

  // What callers ask for

  spawn(method: "steps" | "flaky" | "doomed" | "hang", key: string): string {
    return this.spawnFiber(method, { key }, { idempotencyKey: key, maxRetries: 1 });
  }

  /** Cancelled before its method had a chance to run. */
  spawnAndCancel(key: string): Promise<boolean> {
    return this.cancelFiber(this.spawn("hang", key), "changed my mind");
  }

  async start(name: string): Promise<{ id: string; accepted: boolean }> {
    const { fiberId, accepted } = await this.startFiber(name, (fiber) => this.#hold(fiber), { idempotencyKey: name });
    return { id: fiberId, accepted };
  }

  /** Resolves once the fiber has made its checkpoint, long before it ends. */
  async begin(name: string): Promise<string> {
    const begun = Promise.withResolvers<string>();
    const ended = this.runFiber(name, async (fiber) => {
      const held = this.#hold(fiber);
      begun.resolve(fiber.id);
      await held;
    });
    ended.catch(() => undefined);
    return begun.promise;
  }

  release(): void {
    release.resolve();
  }

  result() {
    return this.listFibers().map(({ fiberId, name, kind, idempotencyKey, status, snapshot, result, error }) => {
      return { id: fiberId, name, kind, key: idempotencyKey, status, snapshot, result, error };
    });
  }

  // What fibers do

  async steps({ key }: { key: string }, fiber: FiberContext): Promise<string> {
    const { done = 0 } = (fiber.snapshot ?? {}) as { done?: number };
    for (let step = done; step < STEPS; step++) {
      report({ type: "step", key, step, id: fiber.id, attempt: fiber.attempt });
      this.stash({ done: step + 1 });
      await tick();
    }
    return `${key} done`;
  }

  async flaky(payload: { key: string }, fiber: FiberContext): Promise<string> {
    if (fiber.attempt > 1) return this.steps(payload, fiber);
    report({ type: "step", key: payload.key, step: 0, id: fiber.id, attempt: fiber.attempt });
    fiber.stash({ done: 1 });
    throw new Error("not at the first try");
  }

  async doomed({ key }: { key: string }, fiber: FiberContext): Promise<never> {
    report({ type: "step", key, step: fiber.attempt, id: fiber.id, attempt: fiber.attempt });
    await tick();
    throw new Error("never");
  }

  async hang({ key }: { key: string }, fiber: FiberContext): Promise<void> {
    report({ type: "step", key, step: 0, id: fiber.id, attempt: fiber.attempt });
    if (isLaterLife) return;
    await new Promise((resolve) => fiber.signal.addEventListener("abort", resolve, { once: true }));
  }

  async #hold(fiber: FiberContext): Promise<string> {
    report({ type: "began", name: fiber.name, id: fiber.id });
    fiber.stash({ by: fiber.name });
    await release.promise;
    return "held";
  }

  override onFiberRecovered(fiber: FiberRecoveryContext): void | FiberRecoveryResult | Promise<FiberRecoveryResult> {
    const { id, name, attempt, snapshot, kind } = fiber;
    report({ type: "recovered", id, name, attempt, snapshot, kind });
    if (name === "throws first") {
      if (attempt === 1) throw new Error("the hook is not ready");
      return { status: "completed", snapshot: { carried: true } };
    }
    if (name === "carried on") {
      // Not asynchronous: the new fiber and the end of the old one are one commit.
      this.spawnFiber("steps", { key: `rest of ${id}` });
      return { status: "completed" };
    }
    if (name === "asks around") return tick().then(() => ({ status: "aborted", reason: "too old" }));
    if (kind === "run") return { status: "completed" };
    // For the one called "by hand" there is nothing to say.
    return undefined;
  }
}

if (process.env["VERSION"] === "2") Reflect.deleteProperty(Runner.prototype, "steps");

const agents = { Runner };
reportEvents();
obey(createHost({ agents, ...watchedOptions() }), agents);
