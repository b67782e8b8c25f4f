// What must be true of every run, whatever was done in it and in whichever order.
import type { Client } from "./branches-client.ts";
import { openTurns, type Run } from "./branches-state.ts";
import { TAIL_MESSAGES } from "../../src/wire/history.ts";
import { Facts, keyIn } from "./branches-facts.ts";
import { type Key, MAIN } from "./branches-oracle.ts";
import type { ModelCall } from "./branches-world.ts";

/** A request holds the conversation of its session, and nothing else. */
export function checkPrompt(run: Run, { turn, session: id, prompt }: ModelCall): void {
  const { oracle, wrong, world } = run;
  for (const id of run.offers.keys()) if (world.chat.knows(id)) run.accept(id);
  const session = oracle.sessions.get(id);
  if (session === undefined) return void wrong.push(`the turn ${turn} ran in ${id}, which is gone`);
  const asked = run.turns.get(turn);
  if (asked !== undefined && asked !== id) wrong.push(`the turn ${turn} was asked for in ${asked} and ran in ${id}`);
  const open = new Set(openTurns(world).map((row) => row.id));
  // A continuation goes on with an answer that is there; what waits behind that is not read.
  const isNext = session.pending.some((pending) => pending.turn === turn);
  oracle.resolve(session, run.isAnswered, (one) => (isNext ? one === turn : open.has(one)));
  checkTools(run, turn, prompt);
  const said = keysIn(prompt);
  if (said.at(-1) === `a:${turn}`) said.pop();
  const shown = oracle.path(session.leaf).filter((key) => !key.startsWith("?") && key !== `a:${turn}`);
  // Nor is what was said right behind a yes: the call that was approved runs first.
  const waits = (key: Key | undefined) => open.has(`r${/^u(\d+)v/.exec(key ?? "")?.[1]}`);
  while (!isNext && waits(shown.at(-1))) shown.pop();
  if (session.fuzzy) {
    return checkOwn(run, turn, id, said);
  }
  // What was taken into an answer stands in the midst of it.
  if (world.setup.policy === "steer") return checkOwn(run, turn, id, said);
  const trims = world.setup.maxMessages !== undefined;
  const fits = trims ? isWithin(said, shown) && said.at(-1) === shown.at(-1) : said.join() === shown.join();
  if (!fits) wrong.push(`the turn ${turn} of ${id} read ${said.join(" ")} instead of ${shown.join(" ")}`);
}

/** At least nothing of another session. */
function checkOwn({ oracle, wrong, world }: Run, turn: string, id: string, said: readonly Key[]): void {
  const shown = new Set([...new Facts(world).path(id).map(({ key }) => key), ...oracle.shown(id)]);
  const foreign = said.filter((key) => (oracle.nodes.get(key)?.owner ?? oracle.ownerOf(id)) !== oracle.ownerOf(id));
  for (const key of foreign) if (!shown.has(key)) wrong.push(`the turn ${turn} of ${id} read ${key}`);
}

/** The messages of a request. What one answer says in several steps is one. */
function keysIn(prompt: ModelCall["prompt"]): Key[] {
  const keys: Key[] = [];
  let answers = false;
  for (const { role, content } of prompt) {
    if (role === "system" || role === "tool") continue;
    const key = keyIn(role, JSON.stringify(content));
    if (key !== undefined && !(role === "assistant" && answers)) keys.push(key);
    if (key !== undefined || role === "user") answers = role === "assistant";
  }
  return keys;
}

function checkTools({ wrong }: Run, turn: string, prompt: ModelCall["prompt"]): void {
  let open: string[] = [];
  for (const { role, content } of prompt) {
    if (typeof content === "string") continue;
    if (role !== "tool" && open.length > 0)
      wrong.push(`the turn ${turn} read calls without results: ${open.join(" ")}`);
    if (role !== "tool") open = [];
    for (const part of content) {
      if (part.type === "tool-call") open.push(part.toolCallId);
      if (part.type !== "tool-result") continue;
      const at = open.indexOf(part.toolCallId);
      if (at === -1) wrong.push(`the turn ${turn} read a result without a call: ${part.toolCallId}`);
      else open.splice(at, 1);
    }
  }
}

/** Nobody is told anything of a stream of another session. */
export function checkStream(run: Run, client: Client, turn: string): void {
  // Who was moved before what it asked for was undone does not know where it is.
  if (client.moving || run.moving || run.unsteady) return;
  const { wrong, world } = run;
  const [row] = world.rows<{ session: string }>("SELECT session FROM perdure_turn WHERE id = ?", turn);
  const session = row?.session ?? run.turns.get(turn);
  const here = run.sessionOf(client);
  if (session !== undefined && session !== here)
    wrong.push(`${client.name} is in ${here} and heard of ${turn} of ${session}`);
}

/** When nothing runs and nothing waits. The agent must be awake. */
export function checkQuiet(run: Run): void {
  const { oracle, wrong, world } = run;
  const facts = new Facts(world);
  wrong.push(...facts.broken());
  for (const session of oracle.sessions.values()) {
    oracle.resolve(
      session,
      (turn) => facts.byKey.has(`a:${turn}`),
      () => false,
    );
  }
  if (oracle.unsure) for (const key of oracle.nodes.keys()) if (!facts.byKey.has(key)) oracle.nodes.delete(key);
  if (oracle.unsure || [...oracle.sessions.values()].some((session) => session.fuzzy)) adopt(run, facts);
  const trims = world.setup.maxMessages !== undefined;
  for (const id of oracle.sessions.keys()) {
    const stored = facts.path(id).map(({ key }) => key);
    const expected = oracle.shown(id);
    // Of a conversation that is limited the oldest may be gone.
    const fits = trims ? isWithin(stored, expected) : stored.join() === expected.join();
    if (!fits) wrong.push(`${id} shows ${stored.join(" ")} instead of ${expected.join(" ")}`);
  }
  checkUntouched(run, facts);
  for (const id of facts.sessions.keys()) if (!oracle.sessions.has(id)) wrong.push(`there is a session ${id}`);
  for (const id of oracle.sessions.keys())
    if (id !== MAIN && !facts.sessions.has(id)) wrong.push(`the session ${id} is gone`);
  if (!trims) for (const key of oracle.nodes.keys()) if (!facts.byKey.has(key)) wrong.push(`${key} is lost`);
  for (const { key, session } of facts.nodes) {
    const owner = oracle.nodes.get(key)?.owner;
    if (owner === undefined) wrong.push(`${key} is there`);
    else if (owner !== session && !trims) wrong.push(`${key} belongs to ${session} instead of ${owner}`);
  }
  // What was refused is still shown by who sent it.
  if (!run.unsteady) for (const client of world.clients) checkClient(run, client, facts);
  for (const { id, session } of openTurns(world))
    if (!oracle.sessions.has(session)) wrong.push(`the turn ${id} waits in ${session}, which is gone`);
  if (!run.unsteady) for (const error of world.errors) wrong.push(`the agent reported: ${String(error)}`);
  const failed = world.rows<{ id: string; error: string }>("SELECT id, error FROM perdure_turn WHERE status = 'error'");
  if (!run.unsteady) for (const { id, error } of failed) wrong.push(`the turn ${id} failed: ${error}`);
  world.errors.length = 0;
}

/** Where nothing was said or done, nothing has changed, whatever others did. */
function checkUntouched(run: Run, facts: Facts): void {
  const { world, oracle, wrong, untouched } = run;
  const busy = new Set(
    world
      .rows<{ session: string }>("SELECT session FROM perdure_turn WHERE seq > ?", run.seen)
      .map((row) => row.session),
  );
  for (const id of oracle.sessions.keys()) {
    const stored = facts
      .path(id)
      .map(({ key }) => key)
      .join(" ");
    const before = untouched.get(id);
    if (before !== undefined && before !== stored && !busy.has(id))
      wrong.push(`${id} shows ${stored}, and ${before} before`);
    untouched.set(id, stored);
  }
  run.seen = world.rows<{ seq: number | null }>("SELECT max(seq) AS seq FROM perdure_turn")[0]?.seq ?? 0;
}

/** Takes what is stored for what must be: of sessions whose place depended on the moment. */
function adopt({ oracle }: Run, facts: Facts): void {
  const keyAt = (seq: number | null) => (seq === null ? null : (facts.bySeq.get(seq)?.key ?? null));
  for (const { key, parent, session } of facts.nodes)
    oracle.nodes.set(key, { key, parent: keyAt(parent), owner: session });
  for (const session of oracle.sessions.values()) {
    if (session.fuzzy) session.leaf = keyAt(facts.sessions.get(session.id)?.leaf ?? null);
    session.fuzzy = false;
  }
  oracle.unsure = false;
}

function checkClient(run: Run, client: Client, facts: Facts): void {
  if (!client.connected) return;
  const session = run.sessionOf(client);
  const stored = facts.path(session).map(({ id }) => id);
  // Who wants pages is told the end alone: what is put further up, in front of very many that wait, it reads later.
  const shown = client.list.map(({ id }) => id).slice(client.pages ? -TAIL_MESSAGES : 0);
  const trims = run.world.setup.maxMessages !== undefined;
  const expected = client.whole && !client.pages ? stored : stored.slice(-Math.min(TAIL_MESSAGES, stored.length));
  // Who sends does not hear what was trimmed for it.
  if (trims && shown.slice(-expected.length).join() === expected.join()) return;
  // A public page that is new shows nothing until something is said.
  if (shown.join() !== expected.join())
    run.wrong.push(`${client.name} in ${session} shows ${shown.join(" ")} instead of ${expected.join(" ")}`);
}

function isWithin(some: readonly Key[], all: readonly Key[]): boolean {
  let at = 0;
  for (const key of all) if (some[at] === key) at++;
  return at === some.length;
}
