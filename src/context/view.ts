import { withoutSteered } from "../message/steered.ts";
import { isToolPart, type Part, type UIMessage, isTerminal, toolParts } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { Sql } from "../port.ts";
import { unloadedCalls, markerFor } from "../memory/loaded.ts";
import { compactedMessages, type CompactionRow, doneAt, pinsOf } from "../store/compaction.ts";
import { type DamageTeller, readStoredList } from "../store/damaged.ts";
import { readMessageAt } from "../store/message.ts";
import { ownerIdOf } from "../store/session.ts";
import { noteInstead, withTexts } from "./cleared.ts";

/** One message of a path through the tree. */
export interface PathNode {
  /** Its number in the store. */
  readonly seq: number;
  readonly message: UIMessage;
  readonly pinned: boolean;
}

/** A message that the model reads, from one of its parts on. */
export interface ShownNode extends PathNode {
  /** How many of its parts are covered by a compaction. */
  readonly from: number;
  /** The last message before the next shown one: this, or one behind it that an answer took in. */
  readonly last: number;
  /** Of those that it took in, the ones that are pinned. */
  readonly taken?: readonly PathNode[];
}

/** A call that has a newer output of what an older one was about. */
export interface NewerCall {
  /** The id of its message. */
  readonly message: string;
  readonly call: string;
}

/** What the model is shown of a path: all that a request is made from. */
export interface ContextView {
  /** The compaction in effect. */
  readonly compaction: CompactionRow | undefined;
  /** Messages that it covers and that are shown whole all the same, oldest first. */
  readonly pinned: readonly PathNode[];
  /** What it does not cover, oldest first. */
  readonly nodes: readonly ShownNode[];
  /** Tool calls whose outputs are not shown, as {@link callKey} names them. */
  readonly cleared: ReadonlySet<string>;
  /** Of these, the ones that newer outputs stand for. */
  readonly newer?: ReadonlyMap<string, readonly NewerCall[]>;
  /** The ids of the compactions that leave them out. */
  readonly prunedBy?: ReadonlyMap<string, string>;
  /** What is shown instead of texts that were loaded and unloaded again: as `markerFor` reads it. */
  readonly unloaded: ReadonlyMap<string, string>;
}

/** A tool call within an agent: providers use ids again. */
export function callKey(seq: number, toolCallId: string): string {
  return `${seq} ${toolCallId}`;
}

/** Reads what the model is shown: all that no compaction covers. Costs that, however long the conversation is. */
export class ContextReader {
  readonly #db: Sql & DamageTeller;
  readonly #pinned = new Map<number, { readonly body: string; readonly message: UIMessage }>();
  #last: CompactionRow | undefined;

  constructor(db: Sql & DamageTeller) {
    this.#db = db;
  }

  /**
   * The view of a path (`up`, newest first). Stops at the first covered message and reads no further.
   * @param session whose loaded texts they are.
   * @param through read on through what was left out without a summary.
   */
  read(up: Iterable<PathNode>, session: string, through = false): ContextView {
    const nodes: PathNode[] = [];
    const prunes: CompactionRow[] = [];
    const marked = new Set(compactedMessages(this.#db));
    let compaction: CompactionRow | undefined;
    for (const node of up) {
      nodes.push(node);
      if (!marked.has(node.seq)) continue;
      const rows = doneAt(this.#db, [node.seq]);
      prunes.push(...rows.filter(({ kind }) => kind === "prune"));
      // A message that was split more than once: the newest covers the most.
      compaction = rows.findLast((row) => row.kind !== "prune" && !(through && isLeftOut(row)));
      if (compaction !== undefined) break;
    }
    nodes.reverse();
    const pinned = this.#pins(compaction);
    // An answer that was pinned after it had been split is shown where it stands, whole.
    const whole = nodes[0]?.pinned === true || pinned.some(({ seq }) => seq === compaction?.at);
    const shown = shownNodes(nodes, compaction, whole);
    return {
      compaction: this.#same(compaction),
      pinned: withTaken(
        pinned.filter(({ seq }) => seq !== compaction?.at || compaction.parts === null),
        whole ? [] : takenBefore(nodes, compaction),
      ),
      nodes: shown,
      ...leftOut(this.#db, prunes, shown),
      unloaded: unloadedCalls(this.#db, ownerIdOf(this.#db, session)),
    };
  }

  /**
   * A path's view including what was left out only for lack of a summary: what a summary is made of. If some of that was
   * deleted since, the view as it is shown.
   */
  whole(up: () => Iterable<PathNode>, session: string): ContextView {
    const shown = this.read(up(), session);
    const { compaction } = shown;
    if (!isLeftOut(compaction) || compaction.parts === 0) return shown;
    const whole = this.read(up(), session, true);
    const last = whole.nodes.findIndex(({ seq, last: end }) => seq === compaction.at || end === compaction.at);
    return last + 1 >= (compaction.leftOut ?? 0) ? whole : shown;
  }

  /** What is made from a row is remembered with it. */
  #same(row: CompactionRow | undefined): CompactionRow | undefined {
    const known = this.#last;
    if (known !== undefined && known.seq === row?.seq && known.pins === row.pins) return known;
    this.#last = row && readable(this.#db, row);
    return this.#last;
  }

  #pins(compaction: CompactionRow | undefined): PathNode[] {
    const seqs = compaction === undefined ? [] : (pinsOf(this.#db, compaction) ?? []);
    for (const seq of this.#pinned.keys()) if (!seqs.includes(seq)) this.#pinned.delete(seq);
    return seqs.flatMap((seq) => {
      const row = readMessageAt(this.#db, seq);
      const known = this.#pinned.get(seq);
      // The same object, so that it is converted once.
      const message = known !== undefined && known.body === row?.body ? known.message : parse(row?.body);
      if (row === undefined || message === undefined) return [];
      this.#pinned.set(seq, { body: row.body, message });
      return [{ seq, message, pinned: row.pinned === 1 }];
    });
  }
}

/** A row whose lists can be read: of one that is damaged there is nothing to carry on. */
function readable(host: DamageTeller, row: CompactionRow): CompactionRow {
  const words = readStoredList(host, row.words, `the words of compaction ${row.seq}`, isPair);
  const files = readStoredList(host, row.files, `the files of compaction ${row.seq}`, isFile);
  return { ...row, words: JSON.stringify(words ?? []), files: JSON.stringify(files ?? []) };
}

/** Whether a compaction only leaves out: a summary of the same is tried again. */
export function isLeftOut(row: CompactionRow | undefined): row is CompactionRow {
  return row?.kind === "truncate" && row.leftOut !== null;
}

function parse(body: string | undefined): UIMessage | undefined {
  return body === undefined ? undefined : parseMessage(tryParseJson(body));
}

/** Pinned messages that a split answer took in, in the part of it that is covered. */
function takenBefore(nodes: readonly PathNode[], compaction: CompactionRow | undefined): PathNode[] {
  const [split] = nodes;
  if (split === undefined || compaction === undefined || compaction.parts === null) return [];
  const taken = new Set<string>();
  for (const part of split.message.parts.slice(0, compaction.parts)) {
    if (part.type === "steering-message") taken.add(part.id);
  }
  return nodes.filter(({ pinned, message }) => pinned && taken.has(message.id));
}

function withTaken(pinned: readonly PathNode[], taken: readonly PathNode[]): readonly PathNode[] {
  const known = new Set(pinned.map(({ seq }) => seq));
  return [...pinned, ...taken.filter(({ seq }) => !known.has(seq))];
}

/** @param nodes oldest first; the first one is that of the compaction, if there is one. */
function shownNodes(nodes: readonly PathNode[], compaction: CompactionRow | undefined, whole: boolean): ShownNode[] {
  const kept = new Set(withoutSteered(nodes.map(({ message }) => message)));
  const shown: ShownNode[] = [];
  for (const [index, node] of nodes.entries()) {
    const covered = index === 0 && compaction !== undefined;
    if (covered && compaction.parts === null) continue;
    const before = shown.at(-1);
    if (!kept.has(node.message)) {
      const taken = node.pinned ? [...(before?.taken ?? []), node] : before?.taken;
      if (before !== undefined) shown[shown.length - 1] = { ...before, last: node.seq, ...(taken && { taken }) };
      continue;
    }
    const { seq, message, pinned } = node;
    shown.push({ seq, message, pinned, from: covered && !whole ? (compaction.parts ?? 0) : 0, last: seq });
  }
  return shown;
}

/** A call of a row of the kind `prune`: its message's number, its id, and the message and the id of each newer one. */
export type PrunedCall = readonly [seq: number, call: string, newer?: readonly (readonly [string, string])[]];

/** The calls that rows leave out. A superseded one is shown again when none of the newer ones is left. */
function leftOut(
  host: DamageTeller,
  rows: readonly CompactionRow[],
  nodes: readonly ShownNode[],
): Required<Pick<ContextView, "cleared" | "newer" | "prunedBy">> {
  const newer = new Map<string, readonly NewerCall[]>();
  const prunedBy = new Map<string, string>();
  const messages = new Map(rows.length === 0 ? [] : nodes.map(({ message }) => [message.id, message]));
  const isThere = ([id, call]: readonly [string, string]) =>
    messages.get(id)?.parts.some((part) => hasOutput(part, call)) === true;
  for (const { seq: at, id, calls } of rows) {
    // Without the list nothing is left out.
    for (const [seq, call, by] of readStoredList(host, calls, `the calls of compaction ${at}`, isPruned) ?? []) {
      if (by?.every(isThere) === false) continue;
      const key = callKey(seq, call);
      prunedBy.set(key, id);
      if (by !== undefined)
        newer.set(
          key,
          by.map(([message, other]) => ({ message, call: other })),
        );
    }
  }
  return { cleared: new Set(prunedBy.keys()), newer, prunedBy };
}

function isPair(one: unknown): one is readonly [string, string] {
  return Array.isArray(one) && typeof one[0] === "string" && typeof one[1] === "string";
}

function isFile(one: unknown): one is object {
  return isRecord(one) && typeof one.path === "string" && typeof one.tool === "string";
}

function isPruned(one: unknown): one is PrunedCall {
  if (!Array.isArray(one)) return false;
  const [seq, call, newer = []] = one as unknown[];
  return Number.isSafeInteger(seq) && typeof call === "string" && Array.isArray(newer) && newer.every(isPair);
}

function hasOutput(part: Part, call: string): boolean {
  return isToolPart(part) && part.toolCallId === call && part.state === "output-available";
}

/** What the ids of summaries begin with. They are no messages: no row and no client knows them. */
const SUMMARY_ID = "compaction-";

/**
 * The conversation as the model reads it: the summary and carried-over state as one user message; pinned messages that it covers,
 * without reasoning, which belongs to a context that is gone; then the rest as it was said. Deterministic, and between
 * compactions it only grows at the end. Messages shown as stored are the same objects.
 */
export function project(view: ContextView): UIMessage[] {
  const messages = view.pinned.map(shownWhole);
  for (const node of view.nodes) {
    const message = shownFrom(node, view);
    if (message !== undefined) messages.push(message);
  }
  if (view.compaction !== undefined) return [summaryMessage(view.compaction), ...messages];
  return messages.find(isSpoken)?.role === "assistant" ? [BEGINNING, ...messages] : messages;
}

/** What the model reads first where a conversation begins with an answer: providers take none that begins so. */
export const BEGINNING: UIMessage = {
  id: "beginning",
  role: "user",
  parts: [{ type: "text", text: "[Note of the system, not of the user. The assistant has begun this conversation.]" }],
};

/** Whether anything of a message is said to the model as a message of its own. */
function isSpoken({ role, parts }: UIMessage): boolean {
  if (role !== "user") return role === "assistant";
  return parts.some((part) => (part.type === "text" ? part.text !== "" : part.type === "file"));
}

const summaries = new WeakMap<CompactionRow, UIMessage>();

/** What the model reads in the place of what is covered. */
function summaryMessage(row: CompactionRow): UIMessage {
  const known = summaries.get(row);
  if (known !== undefined) return known;
  const what =
    row.kind === "truncate"
      ? "The beginning of this conversation was left out because it is too long. This is what is known of it:"
      : "The beginning of this conversation was replaced by this summary because it is too long:";
  const { summary, carried } = row;
  const state = carried ? `\n\nHow things stood when it was made, as the system knows it:\n${carried}` : "";
  const text = `[Note of the system, not of the user. ${what}]\n\n${summary ?? ""}${state}\n\n[End of the note. The conversation goes on from here. Do not mention the note, and begin nothing that the user did not ask for.]`;
  const message: UIMessage = { id: `${SUMMARY_ID}${row.id}`, role: "user", parts: [{ type: "text", text }] };
  summaries.set(row, message);
  otherwise.set(message, "parts");
  return message;
}

/** Messages that are shown otherwise than they are stored: only their outputs, or more. */
const otherwise = new WeakMap<UIMessage, "outputs" | "parts">([[BEGINNING, "parts"]]);

/** Whether a message of {@link project} is the stored one, or differs in outputs alone; undefined: in more. */
export function isShownAsStored(message: UIMessage): "stored" | "outputs" | undefined {
  const how = otherwise.get(message);
  return how === "parts" ? undefined : (how ?? "stored");
}

/** A message was made from {@link shownParts} that differ from the stored ones. */
export function noteOtherOutputs(message: UIMessage): void {
  otherwise.set(message, "outputs");
}

const pinnedMessages = new WeakMap<UIMessage, UIMessage>();

function shownWhole({ message }: PathNode): UIMessage {
  if (!message.parts.some(({ type }) => type === "reasoning")) return message;
  const known = pinnedMessages.get(message);
  if (known !== undefined) return known;
  const shown = { ...message, parts: message.parts.filter(({ type }) => type !== "reasoning") };
  pinnedMessages.set(message, shown);
  otherwise.set(shown, "parts");
  return shown;
}

const changedMessages = new WeakMap<UIMessage, { readonly key: string; readonly message: UIMessage }>();

/** One message of a view, from its first part that is not covered on. Undefined when nothing of it is left. */
export function shownFrom(node: ShownNode, view: ContextView): UIMessage | undefined {
  const { message, from } = node;
  const texts = textsIn(node, view);
  if (from === 0 && texts.size === 0) return message;
  if (from >= message.parts.length) return undefined;
  const key = `${from} ${JSON.stringify([...texts])}`;
  const known = changedMessages.get(message);
  if (known?.key === key) return known.message;
  const rest = from === 0 ? message : { ...message, parts: message.parts.slice(from) };
  const shown = texts.size === 0 ? rest : withTexts(rest, texts);
  changedMessages.set(message, { key, message: shown });
  otherwise.set(shown, from === 0 ? "outputs" : "parts");
  return shown;
}

/** Some parts of a message of a view, with texts in the places of the outputs that it leaves out. */
export function shownParts(node: ShownNode, parts: UIMessage["parts"], view: ContextView): UIMessage["parts"] {
  const message = { ...node.message, parts };
  const texts = textsIn({ ...node, message }, { ...view, unloaded: new Map() });
  return texts.size === 0 ? parts : withTexts(message, texts).parts;
}

/** What is shown instead of outputs, by the ids of their calls. */
function textsIn({ seq, message, pinned }: ShownNode, view: ContextView): Map<string, string> {
  const { cleared, unloaded } = view;
  const texts = new Map<string, string>();
  if ((cleared.size === 0 && unloaded.size === 0) || message.role !== "assistant") return texts;
  for (const part of toolParts(message)) {
    if (part.state !== "output-available" || !isTerminal(part)) continue;
    const { toolCallId } = part;
    const key = callKey(seq, toolCallId);
    const isClear = !pinned && cleared.has(key);
    const text = isClear
      ? noteInstead(part, message.id, view.newer?.get(key))
      : markerFor(unloaded, message.id, toolCallId);
    if (text !== undefined) texts.set(toolCallId, text);
  }
  return texts;
}
