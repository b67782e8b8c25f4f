// An agent that is talked to through a published adapter, in a process that is killed. Its network lives in the driver, which says
// what the adapter is made of, and delivers.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { jsonSchema, tool } from "ai";
import { type AgentHost, durableTool, Think } from "perdure";
import { defineMessengers, type Delivery } from "perdure/messengers";
import { chatSdkMessenger } from "perdure/messengers/chat-sdk";
import { serve, subscribe } from "perdure/node";
import { crashPoint, type Fact, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import { clockOf } from "../../crash/fast-clock.ts";
import { ANSWER, PARTS_LIMIT } from "../crash-words.ts";
import { deadly } from "../deadly.ts";
import { leadFiles } from "./lead-files.ts";
import { makeAdapter } from "./make-adapter.ts";

/** How things stand at the end. */
export interface SdkLook extends Fact {
  readonly ran: number;
  readonly turns: number;
  readonly inbound: number;
  /** How many files messages refer to. */
  readonly files: number;
  readonly deliveries: readonly Pick<Delivery, "state" | "maybeTwice" | "kind">[];
}

/** What the driver says. */
interface Given {
  readonly name: string;
  readonly config: Record<string, unknown>;
  /** Where public addresses of the network can be read. */
  readonly files: string;
}

const dir = programDir();
const ranFile = join(dir, "ran");
const { ACTS, KILL_IN } = process.env;
const model = scriptedModel(({ userText, step }) => {
  if (ACTS === "files") {
    const files = [100, 200, 300].map((size) => ({ mediaType: "image/png", data: new Uint8Array(size).fill(7) }));
    return { text: "Here.", files };
  }
  if (userText.includes("long")) return { text: ANSWER.match(/.{1,80}/gs) ?? [], delayMs: 1 };
  if (step === 0) return { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] };
  return { text: ["All ", "is ", "paid."], delayMs: 1 };
});

const { name, config, files } = await new Promise<Given>((resolve) => {
  const forget = onCommand((command) => {
    forget();
    resolve(command as unknown as Given);
  });
  report({ type: "asks" });
});

const ports: AgentHost[] = [];
class Talk extends Think {
  override workspaceTools = false as const;
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
  override async getMessengers() {
    const pace = { directMs: 50, groupMs: 50, perSecond: 1000 };
    const attachments = { allow: ["image/*"] };
    const may = { allow: () => true, approvers: () => true, attachments };
    const terms = { coalesceMs: 0, ...may, delivery: { maxChars: PARTS_LIMIT } };
    const more = ACTS === "files" ? await leadFiles(name, { api: String(config.apiUrl), files }) : {};
    const adapter = await makeAdapter(name, { ...config, ...more });
    const made = chatSdkMessenger({ adapter, verifyWebhook: false, pace, ...terms });
    return defineMessengers({ there: { ...made, channel: deadly(made.channel, dir, KILL_IN) } });
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }
}
subscribe("agent:failed", ({ payload }) => report({ type: "failed", error: payload.error }));

const host = await serve({
  ...{ agents: { Talk }, dir, port: 0, signals: false, idleMs: 1e9, log: false },
  ...{ clock: clockOf(4), onCommit: crashPoint() },
});
report({ type: "serves", url: `${host.url}/agents/talk/main/messengers/there/webhook` });

function look(): void {
  const port = ports.findLast(({ path }) => path.length > 1);
  const open = "SELECT 1 FROM perdure_delivery WHERE state IN ('open', 'held')";
  if (port === undefined || port.sql(open).length > 0) return void setTimeout(look, 10);
  flushCompileCache();
  const count = (query: string) => port.sql<{ n: number }>(query)[0]?.n ?? 0;
  const fact: SdkLook = {
    type: "look",
    ran: existsSync(ranFile) ? readFileSync(ranFile, "utf8").split("\n").length - 1 : 0,
    turns: count("SELECT count(*) AS n FROM perdure_turn WHERE trigger = 'server'"),
    inbound: count("SELECT count(DISTINCT turn_id) AS n FROM perdure_inbound WHERE kind = 'turn'"),
    files: [...JSON.stringify(port.sql("SELECT body FROM perdure_message")).matchAll(/\/files\/[0-9a-f]{64}/g)].length,
    deliveries: port.sql("SELECT kind, state, maybe_twice = 1 AS maybeTwice FROM perdure_delivery ORDER BY seq"),
  };
  report(fact);
}
onCommand(look);
