// Three agents with work: one asleep, one awake, one in the middle of it. Then it waits to be killed.
import { Agent } from "perdure";
import { createHost } from "perdure/node";
import { onCommand, programDir, report } from "perdure/testing";
import type { ScheduleRun } from "perdure/work";

class Alarm extends Agent {
  async in(seconds: number): Promise<void> {
    await this.schedule(seconds, "ring");
  }
  async ring(_payload: unknown, run: ScheduleRun): Promise<void> {
    if (this.name === "running" && run.attempt === 1) {
      report({ type: "running" });
      await new Promise(() => undefined);
    }
    report({ type: "rang", name: this.name, attempt: run.attempt });
  }
}

const host = createHost({ agents: { Alarm }, dir: programDir(), idleMs: 100 });
onCommand(() => undefined);
if (process.env.QUIET === undefined) {
  await host.getAgentByName(Alarm, "asleep").in(2);
  while (host.status().live > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await host.getAgentByName(Alarm, "awake").in(2);
  await host.getAgentByName(Alarm, "running").in(0);
}
