// Plans work with agents of all kinds and is killed in the middle of it.
import { createHost } from "perdure/node";
import { programDir, report } from "perdure/testing";
import { Talker, Worker } from "./workers.ts";

const dir = programDir();
const host = createHost({ agents: { Worker, Talker }, dir, env: { ran: `${dir}/ran`, hangs: true } });
await host.getAgentByName(Worker, "plain").plan();
await host.getAgentByName(Worker, "an odd: name / with everything ".repeat(3)).planBelow(3);
await host.getAgentByName(Talker, "chat").talk();
await host.getAgentByName(Worker, "gone").plan();
report({ type: "planned" });
