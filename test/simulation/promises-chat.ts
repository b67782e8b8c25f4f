// What conversations promise: one end for every turn, one line of messages that all tabs show alike, and no word that was
// shown and is not there.
import type { UIMessage } from "ai";
import { toolParts } from "../../src/message/types.ts";
import { type Facts, type TurnFact, wordsOf } from "./facts.ts";
import type { Say } from "./promises.ts";
import type { SeenChunks } from "./record.ts";
import type { Tab } from "./tab.ts";
import type { World } from "./world.ts";

const ENDS = new Set(["completed", "error", "aborted", "skipped"]);

export function chatPromises(world: World, facts: Facts, tabs: readonly Tab[], say: Say): void {
  const { agent, turns, messages } = facts;
  // Messages that are merged leave their places.
  const touched = world.record.touched.has(agent) || world.setup.policy === "merge";
  for (const { id, status, error } of turns) {
    if (!ENDS.has(status)) say(`${agent}: turn ${id} is left ${status}`);
    if (status === "error" && (error ?? "") === "") say(`${agent}: turn ${id} failed and does not say why`);
  }
  for (const turn of turns) if (!touched) checkTurn(facts, turn, say);
  for (const [id] of world.record.stored.get(agent) ?? []) {
    if (!touched && !messages.has(id)) say(`${agent}: message ${id} was shown as stored and is not there`);
  }
  for (const path of facts.paths.values()) checkPath(agent, path, say);
  for (const tab of tabs) if (tab.agent === agent && tab.connected) checkTab(facts, tab, world.record.delivered, say);
  checkStreams(world, facts, say);
  checkLog(facts, say);
  checkLedger(facts, say);
}

function checkTurn({ agent, messages }: Facts, { id, status, messageIds, answerId }: TurnFact, say: Say): void {
  if (status !== "completed") return;
  for (const message of JSON.parse(messageIds) as string[]) {
    if (!messages.has(message)) say(`${agent}: turn ${id} is completed, and its message ${message} is not there`);
  }
  if (answerId !== null && !messages.has(answerId)) say(`${agent}: the answer of turn ${id} is not there`);
}

function checkPath(agent: string, path: readonly UIMessage[], say: Say): void {
  const ids = path.map(({ id }) => id);
  if (new Set(ids).size < ids.length) say(`${agent}: a message is twice in ${ids.join()}`);
  const tags = path.flatMap(({ role, parts }) => (role === "user" ? [JSON.stringify(parts)] : []));
  if (new Set(tags).size < tags.length) say(`${agent}: a question is twice in a conversation`);
  path.forEach(({ role, id }, i) => {
    if (role === "assistant" && path[i + 1]?.role === "assistant")
      say(`${agent}: behind the answer ${id} stands another`);
  });
}

function checkTab({ agent, paths, turns }: Facts, tab: Tab, delivered: ReadonlyMap<string, number>, say: Say): void {
  const path = paths.get(tab.session) ?? [];
  const plain = (list: readonly UIMessage[]) => list.map(lookOf);
  const [shown, stored] = [plain(tab.list), plain(path)];
  // Who has typed knows what it typed before anyone else, and keeps it where it was typed.
  if (tab.asked.size > 0) for (const list of [shown, stored]) list.sort();
  const at = stored.findIndex((message, i) => message !== shown[i]);
  if (!tab.stale && (at !== -1 || shown.length !== stored.length)) {
    const i = at === -1 ? stored.length : at;
    say(`${tab.name} shows in ${tab.session} of ${agent} as ${i}: ${shown[i]}, stored is ${stored[i]}`);
  }
  for (const id of tab.asked) {
    const times = tab.ends.get(id) ?? 0;
    const sent = delivered.get(id) ?? 0;
    const status = turns.find((turn) => turn.id === id)?.status;
    if (sent > 0 && (sent === 1 ? times !== 1 : times < 1))
      say(`${tab.name} was told ${times} times of the end of ${id} of ${agent} (${status}), sent ${sent} times`);
  }
}

/** A message as far as a tab that saw it grow can know it. */
function lookOf(message: UIMessage): string {
  const calls = toolParts(message).map(({ toolCallId, state }) => `${toolCallId} ${state}`);
  return JSON.stringify({ id: message.id, role: message.role, words: wordsOf(message), calls });
}

/** Every word that was streamed is in the answer. */
function checkStreams({ record, powerLosses }: World, { agent, turns, messages }: Facts, say: Say): void {
  for (const [place, chunks] of record.chunks) {
    const [of, id, epoch] = place.split(" ");
    // What was only committed may have been lost with the power, and was said anew.
    if (of !== agent || Number(epoch) !== powerLosses) continue;
    const turn = turns.find((one) => one.id === id);
    const answer = messages.get(turn?.answerId ?? "");
    if (turn?.status !== "completed" || answer === undefined) continue;
    const seen = wordsIn(chunks);
    if (!wordsOf(answer).includes(seen))
      say(`${agent}: of turn ${id} was shown "${seen}", stored is "${wordsOf(answer)}"`);
  }
}

/** The text of the chunks up to the first that nobody was told. */
function wordsIn(chunks: SeenChunks): string {
  let words = "";
  for (let seq = 0; chunks.has(seq); seq++) {
    const chunk = JSON.parse(chunks.get(seq) ?? "{}") as { type: string; delta?: string };
    if (chunk.type === "text-delta") words += chunk.delta ?? "";
  }
  return words;
}

/** The stream of a turn goes with its end; that of the newest one stays if it has failed, to be told again. */
function checkLog({ agent, logged, turns, run }: Facts, say: Say): void {
  for (const seq of logged) {
    const turn = turns.find((one) => one.seq === seq);
    const newest = turns.filter(({ session, attempts }) => session === turn?.session && attempts > 0).at(-1);
    if (run === undefined && (turn?.status !== "error" || newest?.seq !== seq))
      say(`${agent}: the stream of turn ${turn?.id ?? seq} (${turn?.status}) is still stored`);
  }
}

function checkLedger({ agent, usage, total }: Facts, say: Say): void {
  const tokens = usage.reduce((sum, row) => sum + row.tokens, 0);
  for (const { id, turn, status, purpose } of usage)
    if (status === "open") say(`${agent}: the model call ${id} (${purpose}) of ${turn} is left open`);
  if (usage.length === 0) return;
  if (total?.tokens !== tokens || total.calls !== usage.length || total.reserved !== 0)
    say(`${agent}: the ledger's total is ${JSON.stringify(total)}; its ${usage.length} rows have ${tokens} tokens`);
}
