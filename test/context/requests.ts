// What every request must hold, read from the rows and not from what reads them in Perdure.
import type { UIMessage } from "ai";
import type { ScriptedCall } from "perdure/testing";
import { BLOCK, marksIn, shownOutput, sizeOf, SLACK, SYSTEM, type World } from "./chance.ts";

interface MessageRow {
  readonly seq: number;
  readonly id: string;
  readonly parent: number | null;
  readonly pinned: number;
  readonly body: string;
}

interface CompactionRow {
  readonly seq: number;
  readonly id: string;
  readonly at: number;
  readonly parts: number | null;
  readonly kind: string;
  readonly pins: string;
  readonly calls: string;
  readonly summary: string | null;
}

type Part = UIMessage["parts"][number];

/** Something that was said, in the order in which it must be there. */
interface Item {
  readonly what: string;
  /** Of a call: in which message. */
  readonly seq: number;
  readonly pinned: boolean;
  readonly call?: string;
}

/** Notes what is wrong with a request. */
export function checkRequest(world: World, call: Pick<ScriptedCall, "prompt" | "tools">): void {
  const { prompt } = call;
  const fault = (words: string) => void world.faults.push(`request ${world.requests}: ${words}`);
  const system = prompt.map((message) => (message.role === "system" ? message.content : "")).join("\n");
  if (!system.includes(SYSTEM)) fault("no system prompt");
  if (!system.includes(BLOCK)) fault("no context block");
  const said = prompt.filter(({ role }) => role !== "system");
  if (said[0]?.role !== "user") fault(`begins with ${said[0]?.role}`);

  const sent: string[] = [];
  const results = new Map<string, unknown>();
  let open = new Set<string>();
  for (const message of said) {
    if (message.role !== "tool" && open.size > 0) fault(`calls without a result: ${[...open].join()}`);
    if (message.role === "system") continue;
    for (const part of message.content) {
      if (part.type === "text") sent.push(part.text);
      if (part.type === "tool-call") {
        sent.push(part.toolCallId);
        open.add(part.toolCallId);
      }
      if (part.type === "tool-result") {
        if (!open.delete(part.toolCallId)) fault(`result without a call: ${part.toolCallId}`);
        results.set(part.toolCallId, part.output);
      }
    }
    if (message.role === "tool" && open.size > 0) fault(`calls without a result: ${[...open].join()}`);
    if (message.role === "tool") open = new Set();
  }

  checkFit(world, sizeOf(call), fault);
  const { compaction, items, cleared, covered } = expected(world);
  if (compaction !== undefined) {
    const note = sent.shift() ?? "";
    if (!note.includes(compaction.summary ?? "?")) fault(`the summary of ${compaction.id} is not there`);
    if (!world.told.has(compaction.id)) fault(`no event told of ${compaction.id}`);
    const unread = [...marksIn(covered)].filter(([mark]) => !world.read.has(mark)).map(([mark]) => mark);
    // What nobody read is said to be missing, once.
    const named = (world.told.get(compaction.id) ?? 0) > 0 && note.includes("left out");
    if (unread.length > 0 && !named) fault(`nobody read ${unread.join()} for a summary`);
    for (const mark of unread) world.read.add(mark);
  } else if (sent[0]?.startsWith("[Note of the system") === true && said[1]?.role === "assistant") {
    // Only where an answer comes first.
    sent.shift();
  }
  const wanted = items.map(({ what }) => what);
  const first = wanted.findIndex((what, i) => what !== sent[i]);
  if (first !== -1 || (world.own !== undefined && sent.length !== wanted.length)) {
    const at = first === -1 ? Math.min(wanted.length, sent.length) : first;
    const brief = (text: string | undefined) => text?.slice(0, 40) ?? "nothing";
    fault(
      `${sent.length} items instead of ${wanted.length}; at ${at}: ${brief(sent[at])} instead of ${brief(wanted[at])}`,
    );
  }
  for (const { seq, call, pinned } of items) {
    if (call === undefined) continue;
    const known = world.calls.get(call);
    const output = JSON.stringify(results.get(call) ?? null);
    if (known?.output === undefined) continue;
    if (output.includes(JSON.stringify(shownOutput(known)).slice(1, -1))) continue;
    if (isBounded(world, output, shownOutput(known))) continue;
    const prune = cleared.get(`${seq} ${call}`);
    if (prune === undefined || pinned)
      fault(`the output of ${call} (${known.tool}) is not there: ${output.slice(0, 60)}`);
    else if (!world.told.has(prune)) fault(`no event told of ${prune}`);
  }
}

/** Whether an output is shown in part: more than an eighth of what may be sent, from its beginning on, with a note. */
function isBounded({ usable }: World, output: string, whole: string): boolean {
  const [mark = "?"] = /«o\d+»/.exec(whole) ?? [];
  return whole.length / 4 > usable / 8 && output.includes(mark) && output.includes(" left out");
}

/** Asked again only with less; what is too long was tried to make shorter, and a row says why that failed. */
function checkFit(world: World, tokens: number, fault: (words: string) => void): void {
  const last = world.turn.at(-1);
  if (last?.refused === true && tokens >= last.tokens)
    fault(`refused with ${last.tokens} tokens, asked with ${tokens}`);
  if (tokens <= SLACK * world.usable) return;
  const failed = world.port?.sql(
    "SELECT 1 FROM perdure_compaction WHERE status = 'failed' AND turn = ?",
    world.turnSeq,
  );
  if (failed === undefined || failed.length === 0) fault(`${tokens} tokens, ${world.usable} fit, and no row says why`);
}

/** What must be there behind the summary: pinned messages that it covers, then all that it does not cover. */
function expected(world: World) {
  const sql = <T>(query: string): T[] => world.port?.sql<T>(query) ?? [];
  const current = sql<{ leaf: number | null }>("SELECT leaf FROM perdure_session WHERE current = 1")[0];
  const leaf = current?.leaf ?? sql<{ seq: number }>("SELECT max(seq) AS seq FROM perdure_message")[0]?.seq;
  const rows = new Map(sql<MessageRow>("SELECT * FROM perdure_message").map((row) => [row.seq, row]));
  const path: MessageRow[] = [];
  for (let row = rows.get(leaf ?? -1); row !== undefined; row = rows.get(row.parent ?? -1)) path.unshift(row);
  const done = sql<CompactionRow>("SELECT * FROM perdure_compaction WHERE status = 'done' ORDER BY seq");
  const compaction = path
    .toReversed()
    .flatMap(({ seq }) => done.findLast(({ at, kind }) => at === seq && kind !== "prune") ?? [])[0];
  const onPath = new Set(path.map(({ seq }) => seq));
  const cleared = new Map<string, string>();
  for (const { id, at, kind, calls } of done) {
    if (kind !== "prune" || !onPath.has(at)) continue;
    for (const [seq, call] of JSON.parse(calls) as [number, string][]) cleared.set(`${seq} ${call}`, id);
  }
  const pins = new Set(JSON.parse(compaction?.pins ?? "[]") as number[]);
  const cut = path.findIndex(({ seq }) => seq === compaction?.at);
  const running = path.at(-1)?.body.includes('"role":"assistant"') === true ? path.at(-1) : undefined;
  const items: Item[] = [];
  let told = "";
  for (const [index, row] of path.entries()) {
    const parts = row === running ? (world.own ?? []) : (JSON.parse(row.body) as UIMessage).parts;
    const isPinned = row.pinned === 1;
    const covered = index < cut || (index === cut && compaction?.parts === null);
    const gone = covered ? parts : index === cut ? parts.slice(0, compaction?.parts ?? 0) : [];
    if (!isPinned && !pins.has(row.seq)) told += JSON.stringify(gone);
    if (covered && !isPinned && !pins.has(row.seq)) continue;
    const from = index === cut && compaction?.parts !== null && !isPinned ? (compaction?.parts ?? 0) : 0;
    items.push(...itemsOf(row, parts.slice(covered ? 0 : from)));
  }
  // What was said so far, before there is a row for it.
  if (running === undefined && world.own !== undefined) items.push(...itemsOf({ seq: -1, pinned: 0 }, world.own));
  return { compaction, items, cleared, covered: told };
}

function itemsOf({ seq, pinned }: Pick<MessageRow, "seq" | "pinned">, parts: readonly Part[]): Item[] {
  return parts.flatMap((part): Item[] => {
    const of = { seq, pinned: pinned === 1 };
    if (part.type === "text") return [{ ...of, what: part.text }];
    if (!("toolCallId" in part)) return [];
    const ran = part.state === "output-available";
    return [{ ...of, what: part.toolCallId, ...(ran && { call: part.toolCallId }) }];
  });
}
