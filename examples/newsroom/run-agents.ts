// The program that runs the agents: `node run-agents.ts <address of the session>`.
import { createAgent, durableAgent } from "perdure/collections";
import { openLog } from "./log.ts";
import { plannerModel, researcherModel, writerModel } from "./models.ts";
import { publish, searchArchive } from "./tools.ts";

const log = openLog(process.argv[2] ?? "");

const researcher = createAgent(
  durableAgent({
    name: "researcher",
    instructions: "You find out what is known about a subject, and say so in two sentences.",
    adapter: researcherModel,
    tools: [searchArchive],
    log,
  }),
);

const writer = createAgent(
  durableAgent({
    name: "writer",
    instructions: "You write short stories from what you are given, and publish them.",
    adapter: writerModel,
    tools: [publish],
    log,
  }),
);

createAgent(
  durableAgent({
    name: "planner",
    instructions: "You turn wishes into stories: ask the researcher first, then give the writer what was found.",
    adapter: plannerModel,
    agents: [
      { agent: researcher, description: "Finds out what is known about a subject." },
      { agent: writer, description: "Writes a story and publishes it." },
    ],
    log,
  }),
);

// Started by another program, it ends with it.
process.once("disconnect", () => process.exit());
