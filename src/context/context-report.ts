import type { ModelMessage, SystemModelMessage, ToolSet } from "ai";
import { costOf, NANO_DOLLARS, type Price } from "../ledger/prices.ts";
import type { Usage } from "../ledger/token-usage.ts";
import type { LeftOut } from "./left-out.ts";
import type { ModelLimits } from "./model-limits.ts";
import { type CountText, unitsOfText } from "./text-units.ts";
import { usable } from "./token-budget.ts";
import {
  type ContentPart,
  MESSAGE_UNITS,
  unitsOfContentPart,
  unitsOfInstructions,
  unitsOfMessage,
  unitsOfTool,
} from "./units.ts";
import type { ContextItem, ContextItemKind, ContextReport, LeftOutItem, LeftOutKind } from "../wire/session-types.ts";

const KINDS: readonly ContextItemKind[] = [
  "system",
  "tools",
  "block",
  "summary",
  "carried",
  "pinned",
  "message",
  "tool-output",
  "file",
];

const LEFT_OUT_KINDS: readonly LeftOutKind[] = ["summarised", "cleared", "superseded", "bounded"];

/** A request, exactly as it is sent, and what is known about it. */
export interface ReportedRequest {
  /** `provider/modelId` */
  readonly model: string;
  readonly limits: ModelLimits;
  /** The longest answer that is asked for. */
  readonly reservedOutput?: number | undefined;
  readonly instructions?: string | SystemModelMessage | readonly SystemModelMessage[] | undefined;
  /** What is in the instructions word for word. A block that is not in them is not in the report. */
  readonly blocks?: readonly { readonly label: string; readonly text: string }[] | undefined;
  readonly tools: ToolSet;
  readonly messages: readonly ModelMessage[];
  /** Which stored message a message is from, and what it is if it is no ordinary one. */
  readonly sourceOf?: ((message: ModelMessage) => MessageSource | undefined) | undefined;
  /** What the provider counted for this very request. */
  readonly usage?: Usage | undefined;
  /** About how large it is, if somebody knows better than its text says (`estimateRequest`). */
  readonly estimate?: number | undefined;
  /** What is known about the model (`learned.ts`). */
  readonly factor?: number | undefined;
  /** How long texts are for the model. */
  readonly count?: CountText | undefined;
  /** What is not in it. */
  readonly leftOut?: readonly LeftOut[] | undefined;
  readonly price?: Price | undefined;
}

/** Where a message of a request is from. */
export interface MessageSource {
  /** The stored message. */
  readonly id?: string | undefined;
  readonly kind?: "summary" | "pinned" | undefined;
  /** Of a summary: what in it code has carried over. */
  readonly carried?: string | undefined;
}

/** An item before it is known how many tokens all of them have. */
interface Weighed {
  readonly kind: ContextItemKind;
  readonly id: string | undefined;
  readonly label: string;
  readonly units: number;
}

const MAX_LABEL = 60;
/** So many items are named one by one, the newest. A report of a conversation that was brought along stays short. */
const MAX_ITEMS = 500;
/** What is counted together when it is older than that. */
const OLDER: Partial<Record<ContextItemKind, string>> = {
  message: "older messages",
  "tool-output": "older outputs of tools",
  file: "older files",
};

/** What fills the window. The tokens of all items are exactly those of the request. */
export function contextReport(request: ReportedRequest): ContextReport {
  const { model, limits, reservedOutput, usage, estimate, factor = 1 } = request;
  const weighed = [...weighInstructions(request), ...weighTools(request), ...weighMessages(request)];
  const estimated = usage === undefined || !(usage.input > 0);
  const units = weighed.reduce((sum, item) => sum + item.units, 0);
  const used = estimated ? Math.ceil(estimate ?? factor * units) : usage.input;
  const tokens = shares(
    weighed.map((item) => item.units),
    used,
  );
  const byKind = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<ContextItemKind, number>;
  const items = weighed.map(({ kind, id, label }, index): ContextItem => {
    const own = tokens[index] ?? 0;
    byKind[kind] += own;
    return { kind, ...(id !== undefined && { id }), label, tokens: own };
  });
  // Without anything to count there is nothing to have counted.
  const sum = items.length === 0 ? 0 : used;
  return {
    ...{ model, limit: limits.window, usable: usable(limits, reservedOutput), used: sum, estimated, items, byKind },
    ...reportLeftOut(request, sum, factor),
  };
}

/** What each thing that is left out would cost to have back, on top of what is sent. */
function reportLeftOut({ leftOut = [], price }: ReportedRequest, used: number, factor: number) {
  const dollars = (input: number) =>
    price && costOf(price, { input, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 }) / NANO_DOLLARS;
  const sent = dollars(used);
  const byKind = Object.fromEntries(LEFT_OUT_KINDS.map((kind) => [kind, 0])) as Record<LeftOutKind, number>;
  const items = leftOut.map(({ units, ...rest }): LeftOutItem => {
    const tokens = Math.round(factor * units);
    byKind[rest.kind] += tokens;
    const more = dollars(used + tokens);
    return { ...rest, tokens, ...(sent !== undefined && more !== undefined && { cost: more - sent }) };
  });
  const all = items.reduce((sum, { tokens }) => sum + tokens, used);
  const whole = dollars(all);
  return {
    ...{ leftOut: items.slice(-MAX_ITEMS), leftOutByKind: byKind },
    ...(sent !== undefined && whole !== undefined && { cost: { sent, whole } }),
  };
}

function weighInstructions({ instructions, blocks = [], count = unitsOfText }: ReportedRequest): Weighed[] {
  let rest = unitsOfInstructions(instructions, count);
  if (rest === 0) return [];
  const text = textOf(instructions);
  const found: Weighed[] = [];
  const taken: { readonly at: number; readonly end: number }[] = [];
  for (const { label, text: own } of blocks) {
    const at = freePlace(text, own, taken);
    if (at === undefined) continue;
    taken.push({ at, end: at + own.length });
    const units = count(own);
    rest -= units;
    found.push({ kind: "block", id: undefined, label, units });
  }
  return [{ kind: "system", id: undefined, label: "instructions", units: rest }, ...found];
}

/** Each place is counted once, also when two blocks hold the same, or one holds the other. */
function freePlace(
  text: string,
  own: string,
  taken: readonly { readonly at: number; readonly end: number }[],
): number | undefined {
  if (own === "") return undefined;
  for (let at = text.indexOf(own); at !== -1; at = text.indexOf(own, at + 1)) {
    const end = at + own.length;
    if (taken.every((one) => end <= one.at || at >= one.end)) return at;
  }
  return undefined;
}

function textOf(instructions: ReportedRequest["instructions"]): string {
  if (instructions === undefined || typeof instructions === "string") return instructions ?? "";
  const list = Array.isArray(instructions) ? (instructions as readonly SystemModelMessage[]) : [instructions];
  return list.map((one) => (one as SystemModelMessage).content).join("\n");
}

function weighTools({ tools, count }: ReportedRequest): Weighed[] {
  return Object.entries(tools).map(([name, tool]): Weighed => {
    return { kind: "tools", id: undefined, label: name, units: unitsOfTool(name, tool, count) };
  });
}

function weighMessages({ messages, sourceOf, count = unitsOfText }: ReportedRequest): Weighed[] {
  const all = messages.flatMap((message): Weighed[] => {
    const { id, kind, carried = "" } = sourceOf?.(message) ?? {};
    if (kind === undefined) return weighMessage(message, id, count);
    const units = unitsOfMessage(message, count);
    const state = Math.min(units, count(carried));
    const whole: Weighed = { kind, id, label: labelOf(message), units: units - state };
    return state === 0 ? [whole] : [whole, { kind: "carried", id: undefined, label: "state of things", units: state }];
  });
  const older = all.slice(0, -MAX_ITEMS);
  const kept = older.filter(({ kind }) => OLDER[kind] === undefined);
  const together = Object.entries(OLDER).flatMap(([kind, words]): Weighed[] => {
    const ofKind = older.filter((item) => item.kind === kind);
    const units = ofKind.reduce((sum, item) => sum + item.units, 0);
    if (ofKind.length === 0) return [];
    return [{ kind: kind as ContextItemKind, id: undefined, label: `${ofKind.length} ${words}`, units }];
  });
  return [...kept, ...together, ...all.slice(-MAX_ITEMS)];
}

/** What tools returned and files apart from the rest: they are what is large, and what can be done without. */
function weighMessage(message: ModelMessage, id: string | undefined, count: CountText): Weighed[] {
  const { content } = message;
  const apart: Weighed[] = [];
  let units = MESSAGE_UNITS;
  if (typeof content === "string") units += count(content);
  else {
    for (const part of content) {
      const own = unitsOfContentPart(part, count);
      const item = apartFrom(part);
      if (item === undefined) units += own;
      else apart.push({ ...item, id, units: own });
    }
  }
  const [first, ...more] = apart;
  // A message with nothing but results is its results: the frame belongs to the first.
  if (first !== undefined && typeof content !== "string" && apart.length === content.length) {
    return [{ ...first, units: first.units + units }, ...more];
  }
  return [{ kind: "message", id, label: labelOf(message), units }, ...apart];
}

function apartFrom(part: ContentPart): Pick<Weighed, "kind" | "label"> | undefined {
  if (part.type === "tool-result") return { kind: "tool-output", label: part.toolName };
  if (part.type === "file") return { kind: "file", label: part.filename ?? part.mediaType };
  if (part.type === "image" || part.type === "reasoning-file") {
    return { kind: "file", label: part.mediaType ?? "image" };
  }
  return undefined;
}

function labelOf({ role, content }: ModelMessage): string {
  const said = typeof content === "string" ? content : content.map(wordsOf).find((words) => words !== "");
  const line = (said ?? "")
    .slice(0, MAX_LABEL * 4)
    .replaceAll(/\s+/g, " ")
    .trim();
  if (line === "") return role;
  return `${role}: ${line.length > MAX_LABEL ? `${cut(line)}…` : line}`;
}

function wordsOf(part: ContentPart): string {
  if (part.type === "text") return part.text.trim();
  return part.type === "tool-call" ? `${part.toolName}()` : "";
}

/** Never through the middle of a pair. */
function cut(line: string): string {
  return line.slice(0, MAX_LABEL).replace(/[\uD800-\uDBFF]$/, "");
}

/** Splits a whole number by weights into whole numbers that add up to it (largest remainder). No weights: equal shares. */
export function shares(weights: readonly number[], whole: number): number[] {
  const sum = weights.reduce((before, weight) => before + weight, 0);
  const exact = weights.map((weight) => (sum > 0 ? (weight / sum) * whole : whole / weights.length));
  const parts = exact.map(Math.floor);
  const left = whole - parts.reduce((before, part) => before + part, 0);
  const lost = exact.map((share, index) => ({ index, by: share - Math.floor(share) }));
  lost.sort((a, b) => b.by - a.by || a.index - b.index);
  for (const { index } of lost.slice(0, left)) parts[index] = (parts[index] ?? 0) + 1;
  return parts;
}
