// A script without a server: only what is under way, or due, keeps it running.
import { Agent, Think } from "perdure";
import { createHost } from "perdure/node";
import { programDir, scriptedModel } from "perdure/testing";

const say = (text: string) => process.stdout.write(`${text}\n`);

class Later extends Agent {
  async in(seconds: number, callback: "ring" | "far" = "ring"): Promise<void> {
    await this.schedule(seconds, callback);
  }
  ring(): void {
    say("rang");
  }
  far(): void {}
  work(): void {
    this.spawnFiber("slow");
  }
  async slow(): Promise<void> {
    await unheld(50);
    say("fiber ended");
  }
}

class Talk extends Think {
  override getModel() {
    let calls = 0;
    return scriptedModel(() => {
      if (calls++ === 0)
        throw Object.assign(new Error("busy"), { statusCode: 503, responseHeaders: { "retry-after-ms": "100" } });
      return "answered";
    });
  }
}

/** A wait that does not keep the process running by itself. */
function unheld(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

const host = createHost({
  agents: { Later, Talk },
  dir: programDir(),
  idleMs: process.env.MODE === "evicted" ? 50 : 30_000,
  log: false,
});
const later = host.getAgentByName(Later, "a");
switch (process.env.MODE) {
  case "retry": {
    const { status } = await host.getAgentByName(Talk, "a").runTurn({ input: "hello" });
    say(status);
    break;
  }
  case "fiber":
    await later.work();
    break;
  case "due":
    await later.in(0.2);
    break;
  case "evicted":
    await later.in(0.5);
    break;
  case "idle":
    await later.in(0);
    break;
  case "stopped":
    await later.in(3600, "far");
    await host.stop();
    say("stopped");
    break;
  default:
    throw new Error("MODE says what to do.");
}
