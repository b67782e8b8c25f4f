import type { ModelMessage, Tool } from "ai";
import { type ToolPart, toolName, type UIMessageChunk } from "../../message/types.ts";
import type { BackgroundRow } from "../../store/background-call.ts";
import { approvalOf } from "../../tool/decision-record.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import type { ToolTurn } from "../../tool/park.ts";
import { receiptOf } from "../../tool/receipt.ts";
import type { CallOutcome } from "../../tool/runner.ts";
import type { StepRun } from "./step-run.ts";

/** The answer to a call inside one that goes on in the background. */
export const NESTED_TEXT = "A tool call that runs in the background cannot call other tools.";

/** What the model reads of a call that has no room. */
export const FULL_TEXT =
  "Not started: the limit of background calls is reached (`maxBackgroundCalls`). Wait until one ends, or continue without it.";

/** Shows that a call goes on without its turn. */
export function receiptChunk({ toolCallId }: ToolPart): UIMessageChunk {
  return { type: "tool-output-available", toolCallId, output: receiptOf(toolCallId) };
}

/** Says that a call may not go on without its turn. */
export function tellRefused(run: StepRun, part: ToolPart, reason: "running" | "count"): void {
  const about = { requestId: run.active.row.id, toolCallId: part.toolCallId, toolName: toolName(part) };
  run.all.host.emit("chat:background:refused", { ...about, reason });
}

/** A call that its turn waits for, but not for ever where its tool says so. */
export class WaitedCall {
  readonly #run: StepRun;
  readonly #part: ToolPart;
  readonly #tool: Tool;
  readonly #messages: readonly ModelMessage[];
  readonly #afterMs: number | undefined;
  /** Follows the turn's as long as that waits. */
  readonly #stop = new AbortController();
  readonly #follow: () => void;
  #row: BackgroundRow | undefined;

  constructor(run: StepRun, part: ToolPart, tool: Tool, messages: readonly ModelMessage[]) {
    this.#run = run;
    this.#part = part;
    this.#tool = tool;
    this.#messages = messages;
    this.#afterMs = toolOptionsOf(tool).background;
    this.#follow = () => this.#stop.abort(run.signal.reason);
    if (this.#afterMs !== undefined) run.signal.addEventListener("abort", this.#follow, { once: true });
  }

  /** What stops the tool. */
  get signal(): AbortSignal {
    return this.#afterMs === undefined || this.#run.signal.aborted ? this.#run.signal : this.#stop.signal;
  }

  /** What the tool may ask of the turn, as long as that waits. */
  get turn(): ToolTurn {
    const { toolCallId } = this.#part;
    const { all, active, runner } = this.#run;
    const messageId = active.builder.id;
    const outer = {
      ...{ toolCallId, name: `"${toolName(this.#part)}"`, idempotencyKey: `${messageId}:${toolCallId}` },
      approval: () => approvalOf(all.host, messageId, toolCallId),
    };
    const turn = runner.nested(outer, this.#messages);
    return {
      runNested: async (call) =>
        this.#row === undefined ? turn.runNested(call) : { kind: "error", errorText: NESTED_TEXT },
    };
  }

  /** Shows how far the call is, if it goes on in the background. @returns whether it does */
  progress(output: unknown): boolean {
    if (this.#row !== undefined) this.#run.parts.background.progress(this.#row.seq, output);
    return this.#row !== undefined;
  }

  /** Waits as long as the tool says, then lets the call run on in the background. @param move stores that, with the receipt */
  async outcome(
    running: Promise<CallOutcome>,
    move: (lineage: string | null) => BackgroundRow,
  ): Promise<CallOutcome | "later"> {
    if (this.#afterMs === undefined) return running;
    try {
      if (!(await this.#late(running, this.#afterMs))) return await running;
      if (await this.#moved(running, move)) return "later";
      return await running;
    } finally {
      this.#run.signal.removeEventListener("abort", this.#follow);
    }
  }

  async #late(running: Promise<CallOutcome>, afterMs: number): Promise<boolean> {
    const late = Promise.withResolvers<true>();
    const cancel = this.#run.all.host.clock.after(afterMs, () => late.resolve(true));
    const first = await Promise.race([running, late.promise]);
    cancel();
    return first === true;
  }

  /** @returns false when it has ended meanwhile, or may not: then it is waited for after all. */
  async #moved(running: Promise<CallOutcome>, move: (lineage: string | null) => BackgroundRow): Promise<boolean> {
    const { all, active, parts, signal } = this.#run;
    let ended = false;
    const end = () => (ended = true);
    void running.then(end, end);
    const admission = await parts.background.admit(active.row.id);
    if (ended || signal.aborted) return false;
    const refused = !("lineage" in admission) ? "count" : parts.background.room() <= 0 ? "running" : undefined;
    if (refused !== undefined || !("lineage" in admission)) {
      tellRefused(this.#run, this.#part, refused ?? "count");
      return false;
    }
    all.commit(() => {
      active.take({ chunk: receiptChunk(this.#part) });
      active.log.flush("sync", () => (this.#row = move(admission.lineage)));
    });
    if (this.#row === undefined) return false;
    const given = { tool: this.#tool, messages: this.#messages };
    parts.background.follow(this.#row, given, this.#stop, running);
    return true;
  }
}
