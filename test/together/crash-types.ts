// What the program of the crash tests of runs and its driver say to each other.
import type { UIMessage } from "ai";
import type { LedgerEntry, UsageTotals } from "perdure/chat";
import type { Fact } from "perdure/testing";

/** The classes of the agents, from the top. */
export const LAYERS = ["Talk", "Helper", "Digger"] as const;
export type Layer = (typeof LAYERS)[number];

/** How the end of a run in the background is taken. */
export type Background = "sync" | "async";

export type TreeCommand =
  | { readonly type: "look"; readonly id: number }
  /** What was held goes on. */
  | { readonly type: "release" }
  /** A message of server code, once. */
  | { readonly type: "submit"; readonly text: string }
  | { readonly type: "background"; readonly how: Background }
  /** A run that nobody waits for. */
  | { readonly type: "begin"; readonly task: string; readonly runId: string }
  /** Approves whatever is asked. */
  | { readonly type: "approve" }
  | { readonly type: "cancel"; readonly runId: string }
  | { readonly type: "clear" };

/** A run as its parent stores it. */
export interface Run {
  readonly runId: string;
  readonly status: string;
  readonly cancelled: number;
  readonly output: string | null;
  readonly summary: string | null;
  readonly error: string | null;
  readonly chunks: number;
  readonly toolCallId: string | null;
}

/** The same as the child stores it. */
export interface Asked {
  readonly runId: string;
  readonly status: string;
  readonly output: string | null;
  readonly summary: string | null;
  readonly error: string | null;
  readonly endedAt: number | null;
}

/** One agent, when nothing runs. */
export interface AgentLook {
  readonly id: string;
  readonly layer: Layer;
  readonly messages: readonly UIMessage[];
  /** Newest first. */
  readonly ledger: readonly LedgerEntry[];
  readonly totals: UsageTotals;
  readonly turnTotals: readonly { readonly turn: string; readonly totals: UsageTotals }[];
  readonly turns: readonly {
    readonly id: string;
    readonly status: string;
    readonly cancelled: number;
    readonly attempts: number;
    readonly error: string | null;
  }[];
  readonly toolCalls: readonly { readonly id: string; readonly tool: string; readonly status: string }[];
  /** What it asked of its children. */
  readonly runs: readonly Run[];
  /** What it was asked by its parent. */
  readonly asked: readonly Asked[];
  readonly children: readonly string[];
  readonly queued: number;
  /** The calls that wait for a person. */
  readonly questions: readonly string[];
}

/** All agents, when nothing runs. */
export interface TreeLook extends Fact {
  readonly type: "look";
  readonly id: number;
  readonly agents: readonly AgentLook[];
  /** Model calls of all lives. */
  readonly calls: Readonly<Record<Layer, number>>;
  /** What the first agent was told of the ends of runs in the background. */
  readonly delivered: readonly { readonly run: string; readonly status: string }[];
  /** Commits since the moment that the test counts from. */
  readonly since: number;
}
