// An agent that is talked to at a messenger, for the crash matrix. In memory, the network is a file that all lives share; the fake
// Slack and Telegram live in the driver, which says where. Ada's next act follows from what she sees.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { jsonSchema, tool } from "ai";
import { type AgentHost, durableTool, Think } from "perdure";
import {
  type Channel,
  defineMessengers,
  type Delivery,
  messenger,
  type MessengerDefinition,
  type MessengerEvent,
} from "perdure/messengers";
import { slackMessenger } from "perdure/messengers/slack";
import { telegramMessenger } from "perdure/messengers/telegram";
import { serve, subscribe } from "perdure/node";
import {
  countCalls,
  crashPoint,
  type Fact,
  memoryChannel,
  onCommand,
  programDir,
  report,
  scriptedModel,
} from "perdure/testing";
import { clockOf, fastClock } from "../crash/fast-clock.ts";
import { type Ada, type Acts, answerTo, isOver, type Many, nextAct } from "./crash-ada.ts";
import { ANSWER, PARTS_LIMIT } from "./crash-words.ts";
import { deadly } from "./deadly.ts";

/** How things stand at the end. */
export interface MessengerLook extends Fact {
  readonly seen: readonly string[];
  readonly turns: number;
  readonly ran: number;
  readonly calls: number;
  readonly deliveries: readonly Pick<Delivery, "state" | "maybeTwice" | "kind">[];
  readonly inbound: number;
  /** What Ada said, as she knows it; what of it the conversation has, in its order; and how many answers. */
  readonly said: readonly string[];
  readonly asked: readonly string[];
  readonly answers: number;
  /** How many files messages refer to. */
  readonly files: number;
}

const dir = programDir();
const { FINDS, FIRST, KILL_IN, NETWORK, RATE, STOP, WORDS, WEBHOOK } = process.env;
const acts = (process.env.ACTS ?? "talk") as Acts;
const many = process.env.MANY === undefined ? undefined : (JSON.parse(process.env.MANY) as Many);
/** Each message of somebody who says a lot comes so often. */
const times = many === undefined ? 1 : 10;
const DM = "memory:7";
const ADA = { id: "7", name: "Ada" };
const ranFile = join(dir, "ran");

const counter = countCalls({ file: join(dir, "calls") });
const model = counter.wrap(
  scriptedModel(({ userText, step }) => {
    if (many !== undefined || acts === "pair") return answerTo(userText);
    if (acts === "files") {
      const files = [100, 200, 300].map((size) => ({ mediaType: "image/png", data: new Uint8Array(size).fill(7) }));
      return { text: "Here.", files };
    }
    if (acts === "tool") return step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it.";
    if (userText === "long") return { text: ANSWER.match(/.{1,80}/gs) ?? [], delayMs: 1 };
    if (userText === "pay" && step === 0)
      return { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] };
    if (userText === "pay") return { text: ["All ", "is ", "paid."], delayMs: 1 };
    return { text: ["Working", "."], delayMs: 1, hang: true };
  }),
);

const network = memoryChannel({
  file: join(dir, "network.json"),
  textLimit: PARTS_LIMIT,
  finds: FINDS === "1",
  ...(WORDS === "1" && { buttonData: 0 }),
});
if (RATE !== undefined && network.calls.length === 0)
  network.plan("create", { kind: "rate", retryAfterMs: Number(RATE) * 1000 });
const terms = {
  ...{ coalesceMs: 0, allow: diesBetween, limits: { perHour: 1_000 }, attachments: { allow: ["image/*"] } },
  delivery: {
    ...(STOP === "button" && { stopButton: "Stop" }),
    ...(FIRST !== undefined && { first: FIRST as "stand-in" | "whole" }),
  },
};

/** Where the driver has its fake Slack or Telegram; undefined: the network is in memory. */
const apiUrl = await new Promise<string | undefined>((resolve) => {
  if (NETWORK === undefined) return resolve(undefined);
  const forget = onCommand((command) => {
    forget();
    resolve((command as { readonly url: string }).url);
  });
  report({ type: "asks" });
});

function defined(): MessengerDefinition {
  if (apiUrl === undefined) return messenger(network.channel(), terms);
  const delivery = { maxChars: PARTS_LIMIT, ...terms.delivery };
  if (NETWORK === "slack") {
    const way = WEBHOOK === "1" ? { signingSecret: "signing-secret" } : { appToken: "xapp-fake" };
    return slackMessenger({
      botToken: "xoxb-fake",
      ...way,
      apiUrl,
      pace: { channelMs: 50, perSecond: 1000 },
      ...terms,
      delivery,
    });
  }
  const pace = { directMs: 50, perSecond: 1000 };
  const secret = WEBHOOK === "1" ? { secretToken: "s3cret" } : {};
  return telegramMessenger({ token: "1:fake", apiUrl, pace, ...secret, ...terms, delivery });
}

const ports: AgentHost[] = [];
const rowsOf = <T>(query: string) => ports.flatMap((port) => port.sql<T>(query));

/** `between`: of two that come at once the first is answered, and the second is not stored. */
async function diesBetween({ text }: MessengerEvent): Promise<boolean> {
  const mark = join(dir, "killed");
  if (KILL_IN !== "between" || text !== "two" || existsSync(mark)) return true;
  while (rowsOf("SELECT 1 FROM perdure_delivery WHERE state = 'done'").length === 0) await pause();
  writeFileSync(mark, "");
  process.kill(process.pid, "SIGKILL");
  return true;
}

/** Says when a delivery waits for its time, and when messages are made. */
function watched(channel: Channel): Channel {
  if (RATE === undefined) return channel;
  return {
    ...channel,
    create: async (...args) => {
      report({ type: "creates", at: clock.now(), due: dueAt() });
      const sent = channel.create(...args);
      void sent.catch(async () => {
        while (dueAt() <= clock.now()) await pause();
        report({ type: "waits", due: dueAt() });
      });
      return sent;
    },
  };
}

const dueAt = () => {
  const open = rowsOf<{ due: number }>("SELECT next_at AS due FROM perdure_delivery WHERE state = 'open'");
  return Math.max(0, ...open.map(({ due }) => due));
};
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

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
    // What is said before it has its message when it ends.
    const waits = async () => {
      while (rowsOf("SELECT 1 FROM perdure_delivery_part WHERE provider_id IS NOT NULL").length === 0) await pause();
      return "done";
    };
    const inputSchema = jsonSchema<Record<string, unknown>>({ type: "object" });
    return {
      pay: durableTool(tool({ inputSchema, needsApproval: true, execute }), { replay: "safe" }),
      wait: durableTool(tool({ inputSchema, execute: waits }), { replay: "safe" }),
    };
  }
  override getMessengers() {
    const definition = defined();
    return defineMessengers({ there: { ...definition, channel: watched(deadly(definition.channel, dir, KILL_IN)) } });
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", error: payload.error }));

// A call at a real server must not be late because its machine is busy.
const clock = apiUrl === undefined ? fastClock : clockOf(4);
const host = await serve({
  ...{ agents: { Talk }, dir, port: 0, signals: false, idleMs: 1e9, log: false },
  ...{ clock, onCommit: crashPoint(), start: [["Talk", "main"]] },
});

if (WEBHOOK === "1") report({ type: "webhook", url: `${host.url}/agents/talk/main/messengers/there/webhook` });

const pictures = [1, 2].map((n) => ({
  ...{ name: `p${n}.png`, mediaType: "image/png", bytes: new Uint8Array(1_000).fill(n) },
}));
const ada: Ada = {
  said: () => network.seen(DM, "person").map(({ text }) => text),
  seen: () =>
    network.seen(DM, "agent").map(({ id, text, file, buttons }) => ({
      ...{ id, buttons: buttons.map(({ label }) => label) },
      text: file === undefined ? text : `file of ${Buffer.from(file.base64, "base64").length}`,
    })),
  pressed: network.told.length > 0,
  stopsByButton: STOP === "button",
  says(text) {
    const event = network.says(DM, ADA, text);
    for (let i = 1; i < times; i++) network.repeats(event);
  },
  sends: (text) => pictures.forEach((one, i) => network.sends(DM, ADA, [one], i === 0 ? text : "", { group: "g" })),
  presses: (id, label) => void network.presses(DM, ADA, id, label),
};
if (apiUrl === undefined) setInterval(() => nextAct(ada, acts, many), 10);

const child = () => ports.findLast(({ path }) => path.length > 1);
const isDone = () => {
  const port = child();
  if (port === undefined || (apiUrl === undefined && !isOver(ada, acts, many))) return false;
  // What somebody was told who answered in words is delivered by the root.
  const open = (one: AgentHost) => one.sql("SELECT 1 FROM perdure_delivery WHERE state IN ('open', 'held')");
  return [port, ...ports.filter(({ path }) => path.length === 1).slice(-1)].every((one) => open(one).length === 0);
};

function look(): void {
  const port = child();
  if (port === undefined || !isDone()) return void setTimeout(look, 10);
  flushCompileCache();
  const ran = existsSync(ranFile) ? readFileSync(ranFile, "utf8").split("\n").length - 1 : 0;
  const count = (query: string) => port.sql<{ n: number }>(query)[0]?.n ?? 0;
  const fact: MessengerLook = {
    type: "look",
    seen: ada.seen().map(({ text }) => text),
    turns: count("SELECT count(*) AS n FROM perdure_turn WHERE trigger = 'server'"),
    inbound: count("SELECT count(DISTINCT turn_id) AS n FROM perdure_inbound WHERE kind = 'turn'"),
    ...{ ran, calls: counter.count(), said: ada.said() },
    asked: port
      .sql<{ body: string }>("SELECT body FROM perdure_message WHERE role = 'user' ORDER BY seq")
      .flatMap(({ body }) => /"text":"([^"]*)"/.exec(body)?.[1] ?? []),
    answers: count("SELECT count(*) AS n FROM perdure_message WHERE role = 'assistant'"),
    files: [...JSON.stringify(port.sql("SELECT body FROM perdure_message")).matchAll(/\/files\/[0-9a-f]{64}/g)].length,
    deliveries: port.sql("SELECT kind, state, maybe_twice = 1 AS maybeTwice FROM perdure_delivery ORDER BY seq"),
  };
  report(fact);
}
onCommand(look);
void host;
