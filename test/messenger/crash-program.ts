// An agent that is talked to at a messenger, for the crash matrix. In memory, the network is a file that all lives share, and
// Ada's next act follows from what she sees; at the fake Telegram and Slack, the driver plays her.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { jsonSchema, tool } from "ai";
import { type AgentHost, durableTool, Think } from "perdure";
import { type Channel, defineMessengers, type Delivery, messenger } from "perdure/messengers";
import { serve, subscribe } from "perdure/node";
import {
  countCalls,
  crashPoint,
  type Fact,
  MemoryNetwork,
  onCommand,
  programDir,
  report,
  scriptedModel,
} from "perdure/testing";
import { fastClock } from "../crash/fast-clock.ts";
import { ANSWER, PARTS_LIMIT } from "./crash-words.ts";

/** How things stand at the end. */
export interface MessengerLook extends Fact {
  readonly seen: readonly string[];
  readonly turns: number;
  readonly ran: number;
  readonly calls: number;
  readonly deliveries: readonly Pick<Delivery, "state" | "maybeTwice" | "kind">[];
  readonly inbound: number;
}

const dir = programDir();
const { FINDS, KILL_IN } = process.env;
const DM = "memory:7";
const ADA = { id: "7", name: "Ada" };
const ranFile = join(dir, "ran");

const counter = countCalls({ file: join(dir, "calls") });
const model = counter.wrap(
  scriptedModel(({ userText, step }) => {
    if (userText === "long") return { text: ANSWER.match(/.{1,80}/gs) ?? [], delayMs: 1 };
    if (userText === "pay" && step === 0)
      return { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] };
    if (userText === "pay") return { text: ["All ", "is ", "paid."], delayMs: 1 };
    return { text: ["Working", "."], delayMs: 1, hang: true };
  }),
);

const network = new MemoryNetwork({
  file: join(dir, "network.json"),
  textLimit: PARTS_LIMIT,
  finds: FINDS === "1",
});

/** Dies in the middle: the network has done it, and nobody has heard of it. `create:2`: of the second one. */
function deadly(channel: Channel): Channel {
  const [op, at] = (KILL_IN ?? "").split(":");
  const mark = join(dir, "killed");
  let count = 0;
  const dies = () => op !== undefined && !existsSync(mark) && ++count === Number(at);
  const kill = () => {
    writeFileSync(mark, "");
    process.kill(process.pid, "SIGKILL");
  };
  return {
    ...channel,
    create: async (...args) => {
      const sent = await channel.create(...args);
      if (op === "create" && dies()) kill();
      return sent;
    },
    edit: async (...args) => {
      await channel.edit(...args);
      if (op === "edit" && dies()) kill();
    },
  };
}

const ports: AgentHost[] = [];
class Talk extends Think {
  override workspaceTools = false as const;
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = { noProgressTimeoutMs: 1e9, maxAgeMs: 1e9 };
  constructor(host: AgentHost) {
    super(host);
    ports.push(host);
  }
  override getModel() {
    return model;
  }
  override getTools() {
    const execute = () => {
      appendFileSync(ranFile, "ran\n");
      return "paid";
    };
    const inputSchema = jsonSchema<Record<string, unknown>>({ type: "object" });
    return { pay: durableTool(tool({ inputSchema, needsApproval: true, execute }), { replay: "safe" }) };
  }
  override getMessengers() {
    return defineMessengers({
      memory: messenger(deadly(network.channel()), { coalesceMs: 0, allow: () => true }),
    });
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", error: payload.error }));

const host = await serve({
  ...{ agents: { Talk }, dir, port: 0, signals: false, idleMs: 1e9, log: false },
  ...{ clock: fastClock, onCommit: crashPoint(), start: [["Talk", "main"]] },
});

// What Ada does next follows from what she sees and has said.
const said = () => network.seen(DM, "person").map(({ text }) => text);
const seen = () => network.seen(DM, "agent");
const shows = (text: string) => seen().some((one) => one.text.includes(text));
let pressed = network.told.length > 0;

function act(): void {
  if (said().length === 0) network.says(DM, ADA, "long");
  else if (!said().includes("pay") && shows("THE END")) network.says(DM, ADA, "pay");
  else if (!said().includes("slow") && shows("All is paid.")) network.says(DM, ADA, "slow");
  else if (!said().includes("/stop") && shows("Working.")) network.says(DM, ADA, "/stop");
  const question = seen().findLast(({ buttons }) => buttons.length > 0);
  if (question !== undefined && !pressed) {
    pressed = true;
    network.presses(DM, ADA, question.id, "Approve");
  }
}
setInterval(act, 10);

const child = () => ports.findLast(({ path }) => path.length > 1);
const isDone = () => {
  const port = child();
  if (!shows("(stopped)") || port === undefined) return false;
  return port.sql("SELECT 1 FROM perdure_delivery WHERE state IN ('open', 'held')").length === 0;
};

function look(): void {
  const port = child();
  if (port === undefined || !isDone()) return void setTimeout(look, 10);
  flushCompileCache();
  const ran = existsSync(ranFile) ? readFileSync(ranFile, "utf8").split("\n").length - 1 : 0;
  const count = (query: string) => port.sql<{ n: number }>(query)[0]?.n ?? 0;
  const fact: MessengerLook = {
    type: "look",
    seen: seen().map(({ text }) => text),
    turns: count("SELECT count(*) AS n FROM perdure_turn WHERE trigger = 'server'"),
    inbound: count("SELECT count(DISTINCT turn_id) AS n FROM perdure_inbound WHERE kind = 'turn'"),
    ...{ ran, calls: counter.count() },
    deliveries: port.sql("SELECT kind, state, maybe_twice = 1 AS maybeTwice FROM perdure_delivery ORDER BY seq"),
  };
  report(fact);
}
onCommand(look);
void host;
