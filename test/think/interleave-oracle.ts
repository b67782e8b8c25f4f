// What must be true of every run, whatever was done in it and in whichever order.
import { isTerminal, toolName, toolParts } from "../../src/message/types.ts";
import { type Facts, factsOf, type TurnFact } from "./interleave-facts.ts";
import { checkPrompts, answeredBy } from "./interleave-prompts.ts";
import { tagsIn } from "./interleave-record.ts";
import { asks, SAFE } from "./interleave-tools.ts";
import type { World } from "./interleave-world.ts";

/** What is wrong, in words; nothing when all is well. The agent must be awake and at rest. */
export function check(world: World): string[] {
  const facts = factsOf(world);
  const wrong: string[] = [];
  const say = (text: string) => void wrong.push(text);
  checkTurns(world, facts, say);
  checkInputs(world, facts, say);
  checkTranscript(world, facts, say);
  checkPrompts(world, facts, say);
  checkTools(world, facts, say);
  checkLedger(world, facts, say);
  checkLog(facts, say);
  checkClients(world, facts, say);
  for (const error of world.record.errors) say(`the agent reported: ${String(error)}`);
  return wrong;
}

export type Say = (text: string) => void;

const ENDS = new Set(["completed", "error", "aborted", "skipped"]);

function checkTurns({ record, setup }: World, { turns, turn, calls }: Facts, say: Say): void {
  for (const { id, status } of turns) if (!ENDS.has(status)) say(`turn ${id} is left ${status}`);
  for (const { id, accepted, stopped, withdrawn } of record.requests.values()) {
    const row = turn.get(id);
    if (accepted && row === undefined) say(`request ${id} was accepted and is gone`);
    if (withdrawn === true && row?.status !== "skipped")
      say(`request ${id} was withdrawn and is ${row?.status ?? "gone"}`);
    if (withdrawn === true && calls.has(id)) say(`request ${id} was withdrawn and was answered`);
    if (stopped === undefined) continue;
    const late = calls.get(id)?.filter(({ order }) => order > stopped) ?? [];
    if (late.length > 0) say(`turn ${id} was stopped and called the model again`);
  }
  const cuts = [...record.requests.values()].filter(({ kind }) => kind === "edit" || kind === "regenerate");
  for (const { id, status, error, trigger } of turns) {
    const request = record.requests.get(id);
    // Whoever cuts the conversation before a question stops the turn that answers it.
    const cut = cuts.some(({ order }) => order > (request?.order ?? 0));
    if (status === "aborted" && request?.stopped === undefined && !cut)
      say(`nobody stopped turn ${id}, it was aborted`);
    if (status === "error" && (error ?? "") === "") say(`turn ${id} failed and does not say why`);
    if (status === "skipped" && trigger === "submission" && request?.withdrawn === false)
      say(`submission ${id} is lost`);
  }
  const started = [...calls.keys()].flatMap((id) => turn.get(id) ?? []).filter((row) => row.continuation === 0);
  // What code has submitted gives way to an answer that is asked for anew, and to what stands before that one.
  const gaveWay = (row: TurnFact, to: TurnFact) =>
    row.trigger === "submission" && turns.some(({ trigger, seq }) => trigger === "regenerate" && seq >= to.seq);
  const inOrder = started.every((row, i) =>
    started.slice(0, i).every((before) => before.seq < row.seq || gaveWay(row, before)),
  );
  if (!record.moved && !inOrder) say(`turns did not start in their order: ${started.map(({ id }) => id).join(", ")}`);
  if (setup.policy === "queue" || setup.policy === "steer") {
    for (const { id, status, trigger } of cuts.length > 0 ? [] : turns) {
      const kept = record.requests.get(id)?.withdrawn === false;
      if (status === "skipped" && trigger === "submit" && kept) say(`request ${id} was passed over`);
    }
  }
}

/** Each message was answered once, or there is a reason. */
function checkInputs(world: World, facts: Facts, say: Say): void {
  const { record } = world;
  const limited = Object.keys(world.setup.budgets).length > 0;
  const answers = new Map(facts.turns.map((row) => [row, answeredBy(facts.calls.get(row.id) ?? [])]));
  const spoke = new Set(facts.usage.filter(({ status }) => status === "ok").map(({ turn }) => turn));
  const said = new Set(
    facts.turns.filter(({ id, status }) => status === "completed" && spoke.has(id)).map(({ id }) => id),
  );
  const there = new Set<string | null>(facts.messages.map((message) => message.id));
  const texts = facts.messages.map((message) => (message.role === "user" ? tagsIn(JSON.stringify(message.parts)) : []));
  for (const { id, tag, request } of record.sent.values()) {
    const row = facts.turn.get(request);
    if (row === undefined) continue;
    const place = texts.findIndex((tags) => tags.some((one) => one.tag === tag));
    if (texts.filter((tags) => tags.some((one) => one.tag === tag)).length > 1) say(`message ${id} is there twice`);
    const withdrawn = record.requests.get(request)?.withdrawn === true;
    if (withdrawn && place !== -1) say(`message ${id} was withdrawn and is there`);
    // An answer that was cut off by an edit or a new one is none any more; nor is a mere question for more budget.
    const by = facts.turns.filter(
      (turn) => said.has(turn.id) && there.has(turn.answerId) && answers.get(turn)?.has(tag) === true,
    );
    if (new Set(by.map(({ answerId }) => answerId)).size > 1)
      say(`message ${id} was answered ${by.length} times: by ${by.map((turn) => turn.id).join(", ")}`);
    if (row.status !== "completed") continue;
    if (row.receipt !== null) checkSteered(facts, id, tag, row, answers, say);
    // A message that an edit or a regenerate has cut off is nobody's to answer any more.
    else if (place === -1 || (limited && !facts.calls.has(row.id))) continue;
    else if (answers.get(row)?.has(tag) === true) checkPlace(facts, id, place, row, say);
    else say(`turn ${row.id} is completed, but the model never read message ${id}`);
  }
}

function checkSteered(
  { messages, turn }: Facts,
  id: string,
  tag: string,
  row: TurnFact,
  answers: ReadonlyMap<TurnFact, ReadonlySet<string>>,
  say: Say,
): void {
  const { turnId } = JSON.parse(row.receipt ?? "{}") as { turnId?: string };
  const taker = turn.get(turnId ?? "");
  if (taker === undefined) return say(`message ${id} was taken by a turn that is not there`);
  const answer = messages.find((message) => message.id === taker.answerId);
  if (answer === undefined || taker.status !== "completed") return;
  if (answers.get(taker)?.has(tag) !== true) say(`message ${id} was taken by ${taker.id}, whose model never read it`);
  const times = answer.parts.filter((part) => part.type === "steering-message" && part.id === id).length;
  if (times !== 1) say(`message ${id} is ${times} times in the answer that took it`);
}

/** The first answer behind a message is the one to it. */
function checkPlace({ messages, turns }: Facts, id: string, place: number, row: TurnFact, say: Say): void {
  const next = messages.slice(place + 1).find(({ role }) => role === "assistant");
  // An answer that was replaced since is another turn's.
  const own = turns.some((turn) => turn.answerId === next?.id && turn.seq >= row.seq);
  if (next !== undefined && !own) say(`behind message ${id} stands ${next.id}, not the answer of ${row.id}`);
  const there = messages.findIndex((message) => message.id === row.answerId);
  if (there !== -1 && there < place) say(`the answer to message ${id} stands before it`);
}

function checkTranscript({ setup, record }: World, { messages }: Facts, say: Say): void {
  // A model that says one thing, then another and then the first again is heard each time; so is one whose question
  // was changed in between.
  const faithful = setup.faithful && ![...record.requests.values()].some(({ kind }) => kind === "edit");
  const ids = new Set<string>();
  const words = new Set<string>();
  const calls = new Set<string>();
  for (const message of messages) {
    const { id, role, parts } = message;
    if (ids.has(id)) say(`message ${id} is there twice`);
    ids.add(id);
    if (parts.length === 0) say(`message ${id} is empty`);
    if (role !== "assistant") continue;
    for (const part of toolParts(message)) {
      // Where a provider counts its calls, ids tell them apart only within a message.
      const call = setup.ids === "counted" ? `${id}:${part.toolCallId}` : part.toolCallId;
      if (calls.has(call)) say(`call ${call} is there twice`);
      calls.add(call);
      if (!isTerminal(part)) say(`call ${part.toolCallId} of ${toolName(part)} is left ${part.state}`);
    }
    for (const part of parts) {
      if (part.type !== "text" && part.type !== "reasoning") continue;
      if (part.state === "streaming") say(`a text of ${id} is left open`);
      for (const word of part.text.split(" ").filter((one) => one !== "")) {
        if (faithful && words.has(word)) say(`the words ${word} are there twice, the second time in ${id}`);
        words.add(word);
      }
    }
  }
}

function checkTools({ record }: World, { messages }: Facts, say: Say): void {
  for (const [key, runs] of Map.groupBy(record.runs, (run) => run.key)) {
    const [{ tool } = { tool: "" }] = runs;
    const lives = new Set(runs.map(({ life }) => life)).size;
    if (runs.length > 1 && !SAFE.has(tool)) say(`${tool} ran ${runs.length} times for ${key}`);
    if (runs.length > lives) say(`${tool} ran twice for ${key} without a restart`);
  }
  for (const message of messages) {
    for (const part of toolParts(message)) {
      const key = `${message.id}:${part.toolCallId}`;
      const runs = record.runs.filter((run) => run.key === key);
      const decision = record.decisions.get(key);
      if (part.state === "output-denied" && runs.length > 0) say(`${key} was denied and ran`);
      if (decision?.approved === false && runs.length > 0) say(`${key} was denied and ran`);
      if (asks(toolName(part), part.input) && runs.length > 0 && decision === undefined && !record.unsure.has(key))
        say(`${key} ran, but nobody was asked`);
      if (runs.some(({ order }) => order < (decision?.order ?? 0))) say(`${key} ran before it was approved`);
      if (part.state !== "output-available" || runs.length === 0) continue;
      const { run } = part.output as { run?: number };
      if (run !== runs.at(-1)?.order) say(`${key} shows the result of another run`);
    }
  }
}

function checkLedger({ setup, agent, record }: World, { usage, calls }: Facts, say: Say): void {
  const sum = (rows: readonly { tokens: number }[]) => rows.reduce((all, { tokens }) => all + tokens, 0);
  for (const { turn, status } of usage)
    if (status === "open") say(`a model call of ${turn} is left open in the ledger`);
  const total = agent?.usage("agent");
  if (total?.tokens !== sum(usage) || total.calls !== usage.length || total.reservedTokens !== 0)
    say(`the ledger's total is ${JSON.stringify(total)}; its ${usage.length} rows have ${sum(usage)} tokens`);
  const byTurn = Map.groupBy(usage, ({ turn }) => turn);
  for (const [turn, rows] of byTurn) {
    const own = agent?.usage({ turn });
    if (own?.tokens !== sum(rows)) say(`the ledger's total of ${turn} is ${own?.tokens}, not ${sum(rows)}`);
    const spent = (calls.get(turn) ?? []).reduce((all, call) => all + call.spent, 0);
    const used = Math.max(sum(rows), spent);
    if (used > (setup.budgets.turn?.maxTokens ?? Infinity)) say(`turn ${turn} used ${used} tokens`);
  }
  const most = Math.min(setup.budgets.session?.maxTokens ?? Infinity, setup.budgets.agent?.maxTokens ?? Infinity);
  const used = Math.max(
    sum(usage),
    record.calls.reduce((all, { spent }) => all + spent, 0),
  );
  if (used > most) say(`${used} tokens were used of ${most}`);
}

function checkLog({ logged, turns }: Facts, say: Say): void {
  const newest = turns.filter(({ attempts }) => attempts > 0).at(-1);
  for (const seq of logged) {
    if (newest?.status !== "error" || newest.seq !== seq) say(`the stream of turn ${seq} is still stored`);
  }
}

/** Who stayed connected was told of the end of each of its requests, once. */
function checkClients({ clients, record }: World, { turn }: Facts, say: Say): void {
  for (const client of clients) {
    if (!client.connected) continue;
    for (const id of client.asked) {
      const request = record.requests.get(id);
      if (request === undefined || request.repeated) continue;
      const times = client.ends.get(id) ?? 0;
      if (times !== 1) say(`${client.name} was told ${times} times of the end of ${id} (${turn.get(id)?.status})`);
    }
  }
}
