// A parent and its children in a process of its own, for tests that kill it.
import { serve } from "perdure/node";
import { manualClock, onCommand, programDir, report } from "perdure/testing";
import { togetherAgents } from "./public-agents.ts";

const clock = manualClock();
const { Parent, Researcher } = togetherAgents(clock, {
  called: (query) => report({ type: "call", query }),
  ran: (name) => report({ type: "ran", name }),
});

/** `say 3`: waits until so many children speak, and lets each say a word. One command after the other. */
let said = Promise.resolve();
onCommand((command) => {
  if (typeof command !== "string" || !command.startsWith("say ")) return;
  said = said.then(() => say(Number(command.slice("say ".length))));
});

async function say(children: number): Promise<void> {
  while (clock.pending() < children) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(1);
}

const port = Number(process.env.PORT ?? 0);
const host = await serve({ agents: { Parent }, subAgents: { Researcher }, dir: programDir(), port, signals: false });
report({ type: "listening", port: host.port });
