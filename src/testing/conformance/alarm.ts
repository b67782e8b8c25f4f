import { agentId } from "../../wire/agent-path.ts";
import { type Bench, type BenchCases, scenario } from "./bench.ts";
import { ensure, eventually, same } from "./ensure.ts";
import { askForAlarm, pathOf } from "./probe.ts";

const SOON_MS = 20;
const LATER_MS = 80;
const HOUR_MS = 3_600_000;

/** Alarms of all lives of the agent. Asking does not wake it. */
async function rung(bench: Pick<Bench, "notes">, name: string): Promise<number> {
  return (await bench.notes("alarm", agentId(pathOf(name)))).length;
}

const hasRung = (bench: Pick<Bench, "notes">, name: string, what: string): Promise<void> =>
  eventually(async () => (await rung(bench, name)) > 0, what);

export const alarmCases: BenchCases = {
  "alarm: rings, also when it is past already": scenario(
    { ask: (agent, inMs: number) => askForAlarm(agent, agent.clock.now() + inMs) },
    async (bench) => {
      await bench.act("a", "ask", SOON_MS);
      await bench.act("b", "ask", -HOUR_MS);
      await hasRung(bench, "a", "an alarm rings");
      await hasRung(bench, "b", "a past alarm rings");
    },
  ),
  "alarm: a new request replaces the earlier one": scenario(
    {
      ask(agent) {
        askForAlarm(agent, agent.clock.now() + HOUR_MS);
        askForAlarm(agent, agent.clock.now() + SOON_MS);
      },
    },
    async (bench) => {
      await bench.act("a", "ask");
      await hasRung(bench, "a", "the second request rings");
    },
  ),
  "alarm: one that was taken back does not ring in the same life": scenario(
    {
      takeBack(agent) {
        askForAlarm(agent, agent.clock.now() + SOON_MS);
        askForAlarm(agent, null);
      },
      ask: (agent) => askForAlarm(agent, agent.clock.now() + LATER_MS),
    },
    async (bench) => {
      await bench.act("a", "takeBack");
      await bench.act("fence", "ask");
      await hasRung(bench, "fence", "a later alarm rings");
      same(await rung(bench, "a"), 0, "alarms that were taken back");
    },
  ),
  "alarm: can be asked for again while it rings": scenario(
    { ask: (agent) => askForAlarm(agent, agent.clock.now() + SOON_MS, { times: 2, ms: SOON_MS }) },
    async (bench) => {
      await bench.act("a", "ask");
      await eventually(async () => (await rung(bench, "a")) >= 3, "three alarms");
    },
  ),
  "alarm: rings in the next life of the host, with nobody connected": scenario(
    { ask: (agent) => askForAlarm(agent, agent.clock.now() + LATER_MS) },
    async (bench) => {
      await bench.act("a", "ask");
      await bench.reopen();
      await hasRung(bench, "a", "the alarm rings");
    },
  ),
  "alarm: rings for many agents": scenario(
    { ask: (agent) => askForAlarm(agent, agent.clock.now() + LATER_MS) },
    async (bench) => {
      const names = Array.from({ length: 40 }, (_, index) => `agent-${index}`);
      for (const name of names) await bench.act(name, "ask");
      await bench.reopen();
      for (const name of names) await hasRung(bench, name, `the alarm of ${name} rings`);
    },
  ),
  "wake: an agent that was cut off is woken by the next life of the host, and only such": scenario(
    {
      work(agent) {
        agent.sql("CREATE TABLE work (value TEXT)");
        void agent.keepAwake(new Promise<never>(() => undefined));
      },
      look: (agent) => void agent.sql("SELECT 1"),
      rows: (agent) => agent.sql("SELECT * FROM work"),
    },
    async (bench) => {
      await bench.act("busy", "work");
      await bench.act("idle", "look");
      await bench.reopen();
      const [busy, idle] = [agentId(pathOf("busy")), agentId(pathOf("idle"))];
      await eventually(async () => (await bench.notes("started", busy)).length > 1, "the agent is woken");
      ensure((await bench.notes("started", idle)).length === 1, "no other agent is woken");
      same(await bench.act("busy", "rows"), [], "its rows");
    },
  ),
};
