// The program that runs the agents: `node run-agents.ts <address of the session>`.
import { createAgent, durableAgent } from "perdure/collections";
import { openLog } from "./log.ts";
import { plannerModel, researcherModel, writerModel } from "./models.ts";
import { openSession } from "./session.ts";
import { publish, searchArchive } from "./tools.ts";

/** Where the agents live, and how long one that was killed keeps its seat. */
const shared = { collections: openSession(openLog(process.argv[2] ?? "")), leaseMs: 5_000 };

const researcher = createAgent(
  durableAgent({
    ...shared,
    name: "researcher",
    instructions: "You find out what is known about a subject, and say so in two sentences.",
    adapter: researcherModel,
    tools: [searchArchive],
  }),
);

const writer = createAgent(
  durableAgent({
    ...shared,
    name: "writer",
    instructions: "You write short stories from what you are given, and publish them.",
    adapter: writerModel,
    tools: [publish],
  }),
);

createAgent(
  durableAgent({
    ...shared,
    name: "planner",
    instructions: "You turn wishes into stories: ask the researcher first, then give the writer what was found.",
    adapter: plannerModel,
    agents: [
      { agent: researcher, description: "Finds out what is known about a subject." },
      { agent: writer, description: "Writes a story and publishes it." },
    ],
  }),
);

// Started by another program, it ends with it.
process.once("disconnect", () => process.exit());
