import type { BenchCases } from "./bench.ts";
import { ensure, eventually, same } from "./ensure.ts";
import { askForAlarm, type Probe } from "./probe.ts";

const SOON_MS = 20;
const LATER_MS = 80;
const HOUR_MS = 3_600_000;

/** Alarms of all lives of the agent. */
function rung(probe: Probe, name: string): number {
  return probe.lives.filter(({ host }) => host.path[0].name === name).reduce((sum, life) => sum + life.alarms, 0);
}

export const alarmCases: BenchCases = {
  "alarm: rings, also when it is past already": async (bench) => {
    const [a, b] = [await bench.agent("a"), await bench.agent("b")];
    askForAlarm(a, a.clock.now() + SOON_MS);
    askForAlarm(b, b.clock.now() - HOUR_MS);
    await eventually(() => rung(bench.probe, "a") > 0, "an alarm rings");
    await eventually(() => rung(bench.probe, "b") > 0, "a past alarm rings");
  },
  "alarm: a new request replaces the earlier one": async (bench) => {
    const agent = await bench.agent();
    askForAlarm(agent, agent.clock.now() + HOUR_MS);
    askForAlarm(agent, agent.clock.now() + SOON_MS);
    await eventually(() => rung(bench.probe, "a") > 0, "the second request rings");
  },
  "alarm: one that was taken back does not ring in the same life": async (bench) => {
    const [agent, fence] = [await bench.agent("a"), await bench.agent("fence")];
    askForAlarm(agent, agent.clock.now() + SOON_MS);
    askForAlarm(agent, null);
    askForAlarm(fence, fence.clock.now() + LATER_MS);
    await eventually(() => rung(bench.probe, "fence") > 0, "a later alarm rings");
    same(rung(bench.probe, "a"), 0, "alarms that were taken back");
  },
  "alarm: can be asked for again while it rings": async (bench) => {
    bench.probe.hooks.onAlarm = ({ host, alarms }) => {
      askForAlarm(host, alarms < 3 ? host.clock.now() + SOON_MS : null);
    };
    const agent = await bench.agent();
    askForAlarm(agent, agent.clock.now() + SOON_MS);
    await eventually(() => rung(bench.probe, "a") >= 3, "three alarms");
  },
  "alarm: rings in the next life of the host, with nobody connected": async (bench) => {
    const agent = await bench.agent();
    askForAlarm(agent, agent.clock.now() + LATER_MS);
    await agent.durable();
    await bench.reopen();
    await eventually(() => rung(bench.probe, "a") > 0, "the alarm rings");
  },
  "alarm: rings for many agents": async (bench) => {
    const names = Array.from({ length: 40 }, (_, index) => `agent-${index}`);
    for (const name of names) {
      const agent = await bench.agent(name);
      askForAlarm(agent, agent.clock.now() + LATER_MS);
      await agent.durable();
    }
    await bench.reopen();
    for (const name of names) await eventually(() => rung(bench.probe, name) > 0, `the alarm of ${name} rings`);
  },
  "wake: an agent that was cut off is woken by the next life of the host, and only such": async (bench) => {
    const [busy, idle] = [await bench.agent("busy"), await bench.agent("idle")];
    busy.sql("CREATE TABLE work (value TEXT)");
    void busy.keepAwake(new Promise<never>(() => undefined));
    idle.sql("SELECT 1");
    await busy.durable();
    const before = bench.probe.lives.length;
    await bench.reopen();
    const woken = () => bench.probe.lives.slice(before).filter((life) => life.started);
    await eventually(() => woken().length > 0, "the agent is woken");
    ensure(
      woken().every(({ host }) => host.path[0].name === "busy"),
      "no other agent is woken",
    );
    ensure(bench.probe.find("busy")?.host.sql("SELECT * FROM work").length === 0, "it has its rows");
  },
};
