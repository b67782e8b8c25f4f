// A Think agent whose model has a small window. The same scripted model answers and summarises.
import type { ToolSet } from "ai";
import type { AgentHost, Think } from "perdure";
import { type RecordedCall, type ScriptedCall, type ScriptedReply, scriptedModel } from "perdure/testing";
import { expect } from "vitest";
import { openThink, serverTool } from "../think/harness.ts";

/** What the model may be sent, in tokens. */
export const ROOM = 4_000;

export interface CompactionRowView {
  readonly id: string;
  readonly status: string;
  readonly kind: string;
  readonly trigger: string;
  readonly error: string | null;
  readonly summary: string | null;
  readonly carried: string | null;
  readonly focus: string | null;
  readonly parts: number | null;
  readonly turn: number | null;
}

type Settings = Partial<Pick<Think, "contextOverflow" | "modelLimits" | "maxSteps">>;
type Reply = string | ScriptedReply;

export interface Setup {
  /** What the model says in a turn. */
  readonly answer?: (call: ScriptedCall) => Reply | Promise<Reply>;
  /** What it says as a summary. */
  readonly summary?: (call: ScriptedCall) => Reply | Promise<Reply>;
  readonly settings?: Settings;
  readonly tools?: ToolSet;
  readonly manual?: boolean;
  readonly extend?: (Base: new (host: AgentHost) => Think) => new (host: AgentHost) => Think;
}

/** Whether a call asks for a summary. */
export function isSummary({ prompt }: Pick<ScriptedCall, "prompt">): boolean {
  return prompt.some(({ role, content }) => role === "system" && content.includes("You write the notes"));
}

/** About this many tokens. */
export function long(words: string, tokens: number): string {
  return `${words} ${"abc ".repeat(tokens)}`.trim();
}

export async function openSmall(setup: Setup = {}) {
  const { answer = () => "Yes.", summary = () => "## Goal\nBe short." } = setup;
  const model = scriptedModel((call) => (isSummary(call) ? summary(call) : answer(call)));
  const kit = await openThink(
    (Base) => {
      class Small extends Base {
        override modelLimits: Think["modelLimits"] = { "scripted/*": { window: 100_000, input: ROOM } };
        constructor(host: AgentHost) {
          super(host);
          Object.assign(this, setup.settings);
          // Tests of what is made ahead say so: the others count on every request.
          const { contextOverflow: given } = this;
          if (typeof given === "object") this.contextOverflow = { background: false, ...given };
        }
        override getModel() {
          return model;
        }
        override getSystemPrompt() {
          return "You help.";
        }
        override getTools() {
          return setup.tools ?? {};
        }
      }
      return setup.extend?.(Small) ?? Small;
    },
    { manual: setup.manual ?? false },
  );
  return Object.assign(kit, {
    model,
    /** The calls that were part of a turn. */
    turns: () => model.calls.filter((call) => !isSummary(call)),
    summaries: () => model.calls.filter(isSummary),
    compactions: () => kit.rows<CompactionRowView>("SELECT * FROM perdure_compaction ORDER BY seq"),
  });
}

/** What the model was sent with a call, without the system prompt. */
export function shown(call: RecordedCall | undefined): string {
  return JSON.stringify(call?.prompt.filter(({ role }) => role !== "system"));
}

/** A tool that returns as many words as it is asked for. */
export const reader = serverTool<{ tokens?: number; name?: string }>(({ tokens = 10, name = "" }) =>
  long(`contents of ${name}`, tokens),
);

/** Fills the conversation with this many turns, each of about 1,000 tokens. */
export async function fill(kit: { ask(text: string): Promise<{ status: string }> }, turns: number, from = 1) {
  for (let i = from; i < from + turns; i++) {
    expect(await kit.ask(long(`question ${i}`, 1_000))).toMatchObject({ status: "completed" });
  }
}
