// An agent that summarises in the background, in a process that ends with any promise that nobody owns. The summary
// comes only after what ends the agent.
import { Think } from "../../src/agent/think.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";

/** How the life of the agent ends. */
export type Ending = "stop" | "replace" | "delete";

const summary = Promise.withResolvers<string>();
const model = scriptedModel(({ prompt }) =>
  JSON.stringify(prompt).includes("You write the notes") ? summary.promise : "Yes.",
);

class Small extends Think {
  override workspaceTools = false as const;
  override contextOverflow = { background: true };
  override modelLimits = { "scripted/*": { window: 100_000, input: 4_000 } };
  override getModel() {
    return model;
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }
  async fill(): Promise<void> {
    for (let i = 0; i < 3; i++) await this.runTurn({ input: `question ${i} ${"abc ".repeat(1_000)}` });
  }
  rows() {
    return this.listCompactions().map(({ status, error }) => ({ status, error }));
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
const open = () => createHost({ agents: { Small }, dir: programDir(), idleMs: 1e9, graceMs: 5_000 });

onCommand(async (command) => {
  const ending = command as Ending;
  let host = open();
  const name = ending;
  await host.getAgentByName(Small, name).fill();
  report({ type: "under way", rows: await host.getAgentByName(Small, name).rows() });
  if (ending === "stop") {
    await host.stop();
    host = open();
  } else if (ending === "replace") host.replaceAgents({ agents: { Small: class extends Small {} } });
  else await host.getAgentByName(Small, name).destroy();
  summary.resolve("Too late.");
  // Where a promise has no owner the process ends within these turns of the loop.
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  report({ type: "alive", live: host.status().live });
  await host.stop();
  report({ type: "over" });
});
report({ type: "ready" });
