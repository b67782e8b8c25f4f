import { Agent } from "perdure";
import { memoryStorage, serve } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";

/** More than enough: without a turn for others all of it comes before anybody is answered. */
const MOST = 20_000;

test.each(["queue", "schedule"] as const)(
  "a method that plans itself again at once, by %s, holds up no other agent",
  async (how) => {
    let calls = 0;
    class Restless extends Agent {
      async begin() {
        if (how === "queue") await this.queue("again");
        else await this.schedule(0, "again");
      }
      async again() {
        if (++calls < MOST) await this.begin();
      }
    }
    class Calm extends Agent {
      answer() {
        return calls;
      }
    }
    const host = await serve({
      agents: { Restless, Calm },
      storage: memoryStorage(),
      port: 0,
      signals: false,
      graceMs: 0,
    });
    onTestFinished(() => host.stop());
    await host.getAgentByName(Restless, "one").begin();
    await expect.poll(() => calls).toBeGreaterThan(100);
    expect(await host.getAgentByName(Calm, "one").answer()).toBeLessThan(MOST);
  },
);
