// A server that is stopped by signals. It says what its agent does.
import { Agent, type AgentEnv, callable } from "perdure";
import type { FiberContext } from "perdure";
import { serve } from "perdure/node";
import { onCommand, programDir, report } from "perdure/testing";
import type { ScheduleRun } from "perdure/work";

class Worker extends Agent<AgentEnv, { done: number }> {
  static {
    for (const name of ["begin", "every", "hello"] as const) callable(this, name);
  }
  override initialState = { done: 0 };

  hello(): string {
    return "hello";
  }
  async begin(callback: "slow" | "stuck"): Promise<void> {
    await this.schedule(0, callback);
  }
  async every(): Promise<void> {
    await this.scheduleEvery(0.2, "slow");
  }
  /** Takes until it is told to end. While it runs it leaves more work behind, as agents do. */
  async slow(_payload: unknown, run: ScheduleRun): Promise<void> {
    report({ type: "slow:began", attempt: run.attempt });
    await told("finish");
    this.spawnFiber("fiber");
    await this.queue("queued");
    this.setState({ done: this.state.done + 1 });
    report({ type: "slow:ended" });
  }
  async stuck(_payload: unknown, run: ScheduleRun): Promise<void> {
    report({ type: "stuck:began", attempt: run.attempt });
    if (run.attempt === 1) await new Promise(() => undefined);
    this.setState({ done: this.state.done + 1 });
    report({ type: "stuck:ended" });
  }
  fiber(_payload: unknown, _fiber: FiberContext): void {
    report({ type: "fiber:ran" });
  }
  queued(): void {
    report({ type: "queued:ran" });
  }
  override onClose(): void {
    report({ type: "closed" });
  }
}

const waiting = new Map<string, () => void>();
function told(command: string): Promise<void> {
  return new Promise((resolve) => waiting.set(command, resolve));
}
onCommand((command) => waiting.get(String(command))?.());

const host = await serve({
  agents: { Worker },
  dir: programDir(),
  port: 0,
  graceMs: Number(process.env.GRACE_MS ?? 10_000),
});
report({ type: "listening", url: host.url });
