import fs from "node:fs";
import { styleText } from "node:util";
import { errorText, PerdureError } from "../base/error.ts";
import { isRecord } from "../base/json.ts";
import { diffRequests, type RequestParts } from "../model/request-diff.ts";
import {
  agent,
  all,
  answered,
  type Call,
  type Command,
  done,
  type Item,
  linesOf,
  NotHeld,
  one,
  print,
  query,
  toError,
} from "./call.ts";
import { COPY_COMMANDS } from "./copy-commands.ts";
import { describeDifference, diffTapes, parseTape, type Tape } from "../model/tape.ts";
import { listPages, readPage } from "./docs.ts";
import { cut, dim, harmless, harmlessJson, terminalWidth, toFields, toTable } from "./table.ts";
import { Unreached } from "./target.ts";

/** All of them, in the order in which they are listed. */
export const COMMANDS: readonly Command[] = [
  {
    ...{ name: "info", operands: [], options: [], what: "what the host is, and how much it holds" },
    run: async (call) => print(call, [await one(call, "GET", "host")], hostFields),
  },
  {
    ...{ name: "health", operands: [], options: [], what: "exit 0 if a host runs and takes work" },
    async run(call) {
      const { running, ok } = await one(call, "GET", "host");
      if (running !== true) throw new NotHeld("No host runs here.");
      if (ok !== true) throw new NotHeld("The host is stopping.");
      print(call, [{ ok: true }], () => "ok");
    },
  },
  {
    ...{ name: "agents", operands: [], options: ["class"], what: "all agents, and what they do" },
    run: async (call) => print(call, await all(call, "agents"), agentTable, "There are no agents yet."),
  },
  {
    ...{ name: "show", operands: ["<agent>"], options: [], what: "sessions, turns and questions of one agent" },
    run: async (call) => print(call, [await one(call, "GET", agent(call))], agentPage),
  },
  {
    ...{ name: "messages", operands: ["<agent>"], options: ["session", "limit"], what: "what was said last" },
    async run(call) {
      const { messages, more } = await one(call, "GET", `${agent(call)}/messages${query(call, ["session", "limit"])}`);
      const said = Array.isArray(messages) ? (messages as Item[]) : [];
      print(call, said, (items) => items.map(toWords).join("\n\n"), "Nothing was said yet.");
      if (more === true)
        console.error("What was said before is too large to be shown with it: perdure export has all of it.");
    },
  },
  {
    ...{ name: "request", operands: ["<agent>", "<turn>", "[step]"], options: ["diff", "now"] },
    what: "what a model was sent, and whether that is proved; --diff: to the call before; --now: to the code of now",
    run: request,
  },
  {
    ...{ name: "tape", operands: ["<agent>"], options: ["session", "out"] },
    what: "a session as a file for tests and reports; --out FILE, else to stdout",
    run: tape,
  },
  {
    ...{ name: "diff", operands: ["<tape>", "<tape>"], options: [], what: "where two tapes part; exit 1 if they do" },
    run(call) {
      const [before = "", after = ""] = call.operands;
      const found = diffTapes(readTapeFile(before), readTapeFile(after));
      if (found === undefined) return print(call, [{ equal: true }], () => "equal");
      print(call, [{ equal: false, ...found }], () => harmless(describeDifference(found)));
      throw new NotHeld("The tapes differ.");
    },
  },
  {
    ...{ name: "tail", operands: ["[agent]"], options: [], what: "events as they happen, until Ctrl-C" },
    run: tail,
  },
  {
    ...{ name: "chat", operands: ["<agent>", "<message>"], options: ["session"] },
    what: "says something, and prints the answer",
    run: chat,
  },
  {
    ...{ name: "approvals", operands: [], options: ["class"], what: "calls that wait for a person" },
    async run(call) {
      const toText = (items: readonly Item[]) => toTable(items, ["agent", "call", "tool", "input", "askedAt"]);
      print(call, await all(call, "approvals"), toText, "Nothing waits for a person.");
    },
  },
  {
    ...{ name: "approve", operands: ["<agent>", "<call>"], options: ["reason"], what: "says yes to a call" },
    run: (call) => decide(call, true),
  },
  {
    ...{ name: "deny", operands: ["<agent>", "<call>"], options: ["reason"], what: "says no to a call" },
    run: (call) => decide(call, false),
  },
  {
    ...{ name: "stop", operands: ["<agent>", "<turn>"], options: [], what: "stops a turn for good" },
    run: async (call) =>
      done(call, "POST", `${agent(call)}/turns/${encodeURIComponent(call.operands[1] ?? "")}/stop`, "stopped"),
  },
  {
    ...{ name: "cost", operands: [], options: ["by", "class"] },
    what: "calls, tokens and dollars by model, purpose or day",
    async run(call) {
      const toText = (items: readonly Item[]) => toTable(items, ["key", "calls", "tokens", "usd", "unpriced"]);
      print(call, sumUp(await all(call, `cost${query(call, ["by"])}`)), toText, "No model was called yet.");
    },
  },
  {
    ...{ name: "audit", operands: [], options: ["limit"], what: "what operators did, the newest first" },
    async run(call) {
      const { items } = await one(call, "GET", `audit${query(call, ["limit"])}`);
      const toText = (rows: readonly Item[]) =>
        toTable(rows, ["at", "via", "who", "act", "agent", "detail", "outcome"]);
      print(call, items as Item[], toText, "Operators have done nothing yet.");
    },
  },
  ...COPY_COMMANDS,
  {
    ...{ name: "erase", operands: ["<agent>"], options: ["yes"] },
    what: "deletes an agent, with all below it; needs --yes",
    async run(call) {
      if (call.values["yes"] !== true)
        throw new PerdureError(
          "bad_input",
          `This deletes ${call.operands[0]} for good, with all agents below it. Add --yes.`,
        );
      await done(call, "DELETE", agent(call), "deleted");
    },
  },
  {
    ...{ name: "docs", operands: ["[page]"], options: [], what: "the pages of this version, or one of them" },
    run(call) {
      const [name] = call.operands;
      if (name === undefined) print(call, listPages(), (pages) => toTable(pages, ["page", "title"]));
      else print(call, [{ page: name, text: readPage(name) }], ([page]) => String(page?.["text"] as string).trimEnd());
    },
  },
];

async function decide(call: Call, approved: boolean): Promise<void> {
  const place = `${agent(call)}/approvals/${encodeURIComponent(call.operands[1] ?? "")}`;
  await done(call, "POST", place, approved ? "approved" : "denied", { approved, reason: call.values["reason"] });
}

async function tail(call: Call): Promise<void> {
  const [id] = call.operands;
  const interrupted = new AbortController();
  const end = () => interrupted.abort();
  process.once("SIGINT", end).once("SIGTERM", end);
  try {
    const place = id === undefined ? "events" : `events?agent=${encodeURIComponent(id)}`;
    for await (const line of linesOf(await answered(call, "GET", place, undefined, interrupted.signal))) {
      const item = JSON.parse(line) as Item;
      if (isRecord(item["error"])) throw toError(item["error"], (await call.target()).isAtRest);
      print(call, [item], () => toEventLine(item));
    }
    throw new Unreached("The host has stopped.");
  } catch (thrown) {
    if (!interrupted.signal.aborted) throw thrown;
  } finally {
    process.off("SIGINT", end).off("SIGTERM", end);
  }
}

async function tape(call: Call): Promise<void> {
  const { out } = call.values;
  const response = await answered(call, "GET", `${agent(call)}/tape${query(call, ["session"])}`);
  const lines: string[] = [];
  for await (const line of linesOf(response)) {
    const failed = (JSON.parse(line) as Item)["error"];
    if (isRecord(failed) && !line.includes('"t":')) throw toError(failed, (await call.target()).isAtRest);
    const shown = `${harmlessJson(line)}\n`;
    if (typeof out === "string") lines.push(shown);
    else process.stdout.write(shown);
  }
  if (typeof out !== "string") return;
  fs.writeFileSync(out, lines.join(""));
  console.error(harmless(`${lines.length} lines in ${out}`));
}

/** @throws PerdureError `bad_input` for a file that is not there or no tape */
function readTapeFile(file: string): Tape {
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (thrown) {
    throw new PerdureError("bad_input", `${file} cannot be read: ${errorText(thrown)}`);
  }
  return parseTape(text, file);
}

/** The call of a step, by the last of its tries. @throws PerdureError `not_found` */
async function callOf(call: Call): Promise<string> {
  const [, turn = "", step] = call.operands;
  const found = await one(call, "GET", `${agent(call)}/turns/${encodeURIComponent(turn)}`);
  const calls = (found["calls"] as Item[]).filter(({ purpose }) => purpose === "turn");
  const wanted = step === undefined ? calls.at(-1) : calls.findLast((item) => String(item["step"] as number) === step);
  if (wanted !== undefined) return wanted["id"] as string;
  const steps = [...new Set(calls.map((item) => item["step"]))].join(", ");
  throw new PerdureError(
    "not_found",
    `The turn ${turn} has no such step. ${steps === "" ? "It has called no model." : `It has the steps ${steps}.`}`,
  );
}

async function request(call: Call): Promise<void> {
  const place = (id: string) => `${agent(call)}/calls/${encodeURIComponent(id)}/request`;
  const id = await callOf(call);
  const shown = await one(call, "GET", `${place(id)}${call.values["now"] === true ? "/now" : ""}`);
  if (call.values["diff"] !== true) return print(call, [shown], requestPage);
  if (typeof shown["before"] !== "string") throw new NotHeld("It is the first call of its session.");
  const before = await one(call, "GET", place(shown["before"]));
  const diff = diffRequests(before as unknown as RequestParts, shown as unknown as RequestParts);
  print(call, [{ call: id, before: shown["before"], ...diff }], diffPage);
}

function requestPage([item = {}]: readonly Item[]): string {
  const { model, step, attempt, status, startedAt, proof, changed, cap, settings, instructions, tools, messages } =
    item;
  const facts = { call: item["call"], model, step, attempt, status, startedAt, proof, changed };
  const section = (name: string, value: unknown) =>
    `\n\n${styleText("bold", harmless(name), { stream: process.stdout })}\n${harmless(toText(value))}`;
  const said = (messages as Item[]).map((message) => section(String(message["role"] as string), message["content"]));
  return (
    toFields({ ...facts, ...(cap !== null && { "longest answer": cap }) }) +
    (instructions === null ? "" : section("instructions", instructions)) +
    Object.entries(tools as Item)
      .map(([name, tool]) => section(`tool ${name}`, tool))
      .join("") +
    (Object.keys(settings as Item).length === 0 ? "" : section("settings", settings)) +
    said.join("")
  );
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
}

function diffPage([item = {}]: readonly Item[]): string {
  const { before, common, removed, added } = item;
  const head = toFields({ before, "same messages": common, removed, added, "cache holds": item["extends"] });
  const lines = (item["differences"] as Item[]).map(
    ({ path, before: was, after: is }) =>
      `\n\n${harmless(String(path as string))}\n- ${cut(harmless(toText(was ?? null)), terminalWidth())}\n+ ${cut(harmless(toText(is ?? null)), terminalWidth())}`,
  );
  return head + lines.join("");
}

const DATA = "data: ";

async function chat(call: Call): Promise<void> {
  const { session } = call.values;
  const body = { message: call.operands[1], ...(session !== undefined && { session }) };
  let said = "";
  const questions: string[] = [];
  for await (const line of linesOf(await answered(call, "POST", `${agent(call)}/chat`, body))) {
    if (!line.startsWith(DATA) || line === `${DATA}[DONE]`) continue;
    const chunk = JSON.parse(line.slice(DATA.length)) as Item;
    const { type } = chunk;
    if (call.json) print(call, [chunk], () => "");
    else if (type === "text-delta") process.stdout.write((said = harmless(String(chunk["delta"] as string))));
    else if (type === "text-end" && !said.endsWith("\n")) process.stdout.write((said = "\n"));
    if (type === "error") throw new NotHeld(String(chunk["errorText"] as string));
    if (type === "tool-approval-request") questions.push(String(chunk["toolCallId"] as string));
  }
  for (const question of questions)
    console.error(harmless(`It waits for a person: perdure approve ${call.operands[0]} ${question}`));
}

function sumUp(items: readonly Item[]): Item[] {
  const sums = new Map<string, Record<string, number>>();
  for (const item of items) {
    const key = String(item["key"] as string);
    const sum = sums.get(key) ?? { calls: 0, tokens: 0, usd: 0, unpriced: 0 };
    for (const name of Object.keys(sum)) sum[name] = (sum[name] ?? 0) + Number(item[name]);
    sums.set(key, sum);
  }
  return [...sums].map(([key, sum]) => ({ key, ...sum }));
}

function hostFields([item = {}]: readonly Item[]): string {
  const { running, ok, notices, ...rest } = item;
  const state = running === true ? (ok === true ? "running" : "stopping") : "at rest: no host runs";
  return toFields({ state, ...rest, notices });
}

function agentTable(items: readonly Item[]): string {
  const rows = items.map((item) => ({ ...item, state: stateOf(item) }));
  return toTable(rows, ["id", "state", "last", "usedAt", "calls", "tokens", "usd"]);
}

function stateOf({ awake, running, waiting, questions }: Item): string {
  const doing = [
    running === 0 ? "" : `runs ${String(running)}`,
    waiting === 0 ? "" : `queues ${String(waiting)}`,
    questions === 0 ? "" : `asks ${String(questions)}`,
  ].filter((part) => part !== "");
  return doing.length > 0 ? doing.join(", ") : awake === true ? "awake" : "asleep";
}

function agentPage([item = {}]: readonly Item[]): string {
  const { id, last, usedAt, calls, tokens, usd, children } = item;
  const sections = [
    ["sessions", ["id", "name", "parent", "subject", "current", "updatedAt"]],
    ["turns", ["id", "status", "trigger", "session", "attempts", "error", "createdAt"]],
    ["pending", ["call", "tool", "summary", "input", "askedAt", "expiresAt"]],
  ] as const;
  const tables = sections.flatMap(([name, columns]) => {
    const rows = item[name] as Item[];
    return rows.length === 0
      ? []
      : [`\n\n${styleText("bold", name, { stream: process.stdout })}\n${toTable(rows, columns)}`];
  });
  return toFields({ id, state: stateOf(item), last, usedAt, calls, tokens, usd, children }) + tables.join("");
}

function toWords({ role, parts }: Item): string {
  const words = (Array.isArray(parts) ? (parts as Item[]) : []).flatMap((part) => {
    const { type, text, state, input } = part;
    if (typeof text === "string") return text.trim() === "" ? [] : [harmless(text.trim())];
    if (state === undefined) return type === "step-start" ? [] : [dim(harmless(`[${String(type as string)}]`))];
    const name = String((part["toolName"] ?? type) as string).replace(/^tool-/, "");
    const line = harmless(`[${name} ${String(state as string)}] ${JSON.stringify(input ?? null)}`);
    return [dim(cut(line, terminalWidth()))];
  });
  return [styleText("bold", harmless(String(role as string)), { stream: process.stdout }), ...words].join("\n");
}

const TYPE_WIDTH = 20;

function toEventLine({ type, id, timestamp, payload }: Item): string {
  const time = new Date(Number(timestamp)).toISOString().slice(11, 23);
  const rest = [String(type as string).padEnd(TYPE_WIDTH), id, payload === undefined ? "" : JSON.stringify(payload)];
  const line = harmless(rest.filter((part) => part !== undefined && part !== "").join("  ")).trimEnd();
  return `${dim(time)}  ${cut(line, terminalWidth() - time.length - 2)}`;
}
