import { isCount, isRecord } from "../../../base/json.ts";
import type { Limits, LimitName, LogLine } from "../sandbox.ts";

/** What crosses the border between host and lane. Guest values are JSON text: only strings, numbers and bytes are cloned. */

/** What the guest finds when it starts. */
export interface World {
  /** Names of functions by namespace. */
  readonly tools: Readonly<Record<string, readonly string[]>>;
  readonly files: "read" | "read-write" | null;
  readonly network: boolean;
  readonly env: Readonly<Record<string, string>> | null;
}

/** What earlier parts of the same run have used. */
export interface Used {
  readonly cpuMs: number;
  readonly toolCalls: number;
  readonly outputBytes: number;
}

/** A guest that lies still: its memory, and what the lane has to know to wake it. */
export interface Image {
  readonly bytes: Uint8Array;
  /** Whether the bytes are compressed. */
  readonly packed: boolean;
  /** JSON that only lanes read. */
  readonly meta: string;
}

/** The engine, compiled for one memory limit. */
export interface CompiledEngine {
  readonly wasm: WebAssembly.Module;
  readonly extensions: readonly { readonly name: string; readonly wasm: WebAssembly.Module }[];
}

interface Task {
  readonly run: number;
  /** Threads share what was compiled once; a process compiles for itself. */
  readonly engine: CompiledEngine | undefined;
  readonly limits: Limits;
  readonly used: Used;
  /** More source by import name. */
  readonly modules: Readonly<Record<string, string>>;
}

/** The answer to a call: the JSON of its value, or the message that it fails with. Neither: `undefined`. */
export interface LaneAnswer {
  readonly call: number;
  readonly value?: string;
  readonly error?: string;
}

export type ToLane =
  | (Task & {
      readonly type: "start";
      readonly language: "js" | "ts";
      readonly code: string;
      readonly input: string;
      readonly world: World;
      /** The guest stays: an image follows when it is done. */
      readonly keep: boolean;
    })
  | (Task & { readonly type: "resume"; readonly image: Image; readonly answers: readonly LaneAnswer[] })
  | (Task & { readonly type: "invoke"; readonly image: Image; readonly path: string; readonly args: string })
  | ({ readonly type: "answer"; readonly run: number } & LaneAnswer)
  | { readonly type: "park"; readonly run: number; readonly call: number }
  | { readonly type: "stop"; readonly run: number };

/** How a run ended, as the lane says it. */
export type LaneOutcome =
  | { readonly status: "ok"; readonly value: string | undefined }
  | { readonly status: "error"; readonly name: string; readonly message: string }
  /** Types that cannot be stripped; another compiler may be able to. */
  | { readonly status: "untyped"; readonly message: string }
  | { readonly status: "limit"; readonly limit: LimitName; readonly message: string }
  | { readonly status: "aborted" }
  | { readonly status: "suspended" }
  | { readonly status: "crashed"; readonly message: string };

export type FromLane =
  | { readonly type: "ready" }
  /** The engine stands, the guest's time begins. */
  | { readonly type: "begun"; readonly run: number }
  | { readonly type: "logs"; readonly run: number; readonly lines: readonly LogLine[] }
  | {
      readonly type: "call";
      readonly run: number;
      readonly call: number;
      readonly namespace: string;
      readonly name: string;
      readonly args: string;
    }
  /** Nothing to compute until an answer or a timer comes. */
  | { readonly type: "rest"; readonly run: number }
  /** Comes before `done` of a run that is parked, after `done` of one that stays. */
  | { readonly type: "image"; readonly run: number; readonly image: Image }
  | {
      readonly type: "done";
      readonly run: number;
      readonly outcome: LaneOutcome;
      readonly cpuMs: number;
      readonly memoryBytes: number;
      /** An image follows. */
      readonly keeps: boolean;
    };

const LONGEST_NAME = 100;
const LONGEST_MESSAGE = 10_000;
const levels = new Set<unknown>(["debug", "log", "info", "warn", "error"]);
const limitNames = new Set<unknown>(["wall", "cpu", "memory", "output", "toolCalls", "toolBytes", "stack"]);

/** A message as it came from a lane, or `undefined` for what no honest lane sends. */
export function readFromLane(value: unknown): FromLane | undefined {
  if (!isRecord(value)) return undefined;
  if (value.type === "ready") return { type: "ready" };
  const run = value.run;
  if (!isCount(run)) return undefined;
  switch (value.type) {
    case "logs":
      return readLogs(run, value.lines);
    case "call": {
      const { call, namespace, name, args } = value;
      if (!isCount(call) || !isText(namespace) || !isText(name) || !isText(args)) return undefined;
      return { type: "call", run, call, namespace, name, args };
    }
    case "begun":
    case "rest":
      return { type: value.type, run };
    case "image": {
      const image = value.image;
      if (!isRecord(image) || !(image.bytes instanceof Uint8Array) || !isText(image.meta)) return undefined;
      return { type: "image", run, image: { bytes: image.bytes, meta: image.meta, packed: image.packed === true } };
    }
    case "done": {
      const outcome = readOutcome(value.outcome);
      const { cpuMs, memoryBytes, keeps } = value;
      if (outcome === undefined || !isAmount(cpuMs) || !isAmount(memoryBytes)) return undefined;
      return { type: "done", run, outcome, cpuMs, memoryBytes, keeps: keeps === true };
    }
    default:
      return undefined;
  }
}

function readLogs(run: number, lines: unknown): FromLane | undefined {
  if (!Array.isArray(lines)) return undefined;
  const read: LogLine[] = [];
  for (const line of lines as readonly unknown[]) {
    if (!isRecord(line) || !levels.has(line.level) || !isText(line.text)) return undefined;
    read.push({ level: line.level as LogLine["level"], text: line.text });
  }
  return { type: "logs", run, lines: read };
}

function readOutcome(value: unknown): LaneOutcome | undefined {
  if (!isRecord(value)) return undefined;
  switch (value.status) {
    case "ok":
      return value.value === undefined || isText(value.value) ? { status: "ok", value: value.value } : undefined;
    case "error":
      if (!isText(value.name) || !isText(value.message)) return undefined;
      return {
        status: "error",
        name: value.name.slice(0, LONGEST_NAME),
        message: value.message.slice(0, LONGEST_MESSAGE),
      };
    case "limit":
      if (!limitNames.has(value.limit) || !isText(value.message)) return undefined;
      return { status: "limit", limit: value.limit as LimitName, message: value.message.slice(0, LONGEST_MESSAGE) };
    case "untyped":
    case "crashed":
      if (!isText(value.message)) return undefined;
      return { status: value.status, message: value.message.slice(0, LONGEST_MESSAGE) };
    case "aborted":
    case "suspended":
      return { status: value.status };
    default:
      return undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
