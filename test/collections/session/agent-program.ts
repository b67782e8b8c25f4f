// The process that generates.
import { createAgent, durableAgent } from "perdure/collections";
import { report } from "../../../src/testing/crash/child.ts";
import { scriptedText } from "../../../src/testing/text-adapter.ts";
import { LEASE_MS, openCountedLog } from "./counted-log.ts";
import { AGENT, BEGINNING, END, lookUp, print } from "./desk.ts";

const agent = createAgent(
  durableAgent({
    name: AGENT,
    instructions: "You look words up and print what they mean.",
    adapter: scriptedText(({ messages, step }) => {
      const results = step === 0 ? [] : messages.slice(-step).filter(({ role }) => role === "tool");
      if (results.length > 0) return { text: END, delayMs: 2 };
      const calls = [
        { name: lookUp.name, input: { word: "tide" } },
        { name: print.name, input: { text: "wet feet" } },
      ];
      return { text: BEGINNING, toolCalls: calls };
    }),
    tools: [lookUp, print],
    log: openCountedLog(),
    leaseMs: LEASE_MS,
    owner: "agent process",
    toolMode: process.env.TOOL_MODE === "suspend" ? "suspend" : "hold",
    onFailure: (error) => report({ type: "problem", message: error.message }),
  }),
);
await agent.ready;
report({ type: "ready" });
