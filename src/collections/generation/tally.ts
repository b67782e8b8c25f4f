import { fromSpecTokenUsage } from "@tanstack/ai";
import type { Interrupt, StreamChunk, TokenUsage } from "@tanstack/ai";

/** How a stream of `chat()` ended. */
export interface StreamEnd {
  /**
   * `completed`: the model has said all it had to say. `interrupted`: it waits for approvals or for tools that
   * run elsewhere (`interrupts`), or the agent loop came to its limit while it still called tools (no interrupts).
   */
  readonly outcome: "completed" | "interrupted";
  /** As the model's server gave it with the last turn: `stop`, `length`, `content_filter`, `tool_calls`. */
  readonly finishReason: string | null;
  readonly interrupts: readonly Interrupt[];
}

/** Reads along a stream of `chat()`, and knows at each moment what it has come to. */
export class StreamTally {
  /** The text of all turns of the model. */
  content = "";
  /** The text of its last turn. */
  lastText = "";
  /** What all its turns have used, if it was told. */
  usage: TokenUsage | undefined;
  /** The object of a structured answer. */
  object: unknown;
  /** Why the model's server gave up. */
  failure: string | undefined;
  private finished: Extract<StreamChunk, { type: "RUN_FINISHED" }> | undefined;

  add(chunk: StreamChunk): void {
    switch (chunk.type) {
      case "RUN_FINISHED":
        this.finished = chunk;
        this.addUsage(chunk.usage);
        return;
      case "RUN_ERROR":
        this.failure = chunk.message || chunk.error?.message || "no reason was given";
        return;
      case "TEXT_MESSAGE_CONTENT":
        this.beginTurn();
        this.content += chunk.delta;
        this.lastText += chunk.delta;
        return;
      case "REASONING_START":
      case "TEXT_MESSAGE_START":
      case "TOOL_CALL_START":
        this.beginTurn();
        return;
      case "CUSTOM":
        if (chunk.name === "structured-output.complete") this.object = objectOf(chunk.value);
        return;
      default:
        return;
    }
  }

  /** How the stream has ended, or undefined if it broke off: it is over only when its last turn says so. */
  end(): StreamEnd | undefined {
    if (this.finished === undefined) return undefined;
    const finishReason = this.finished.finishReason ?? this.finished.metadata?.tanstack?.finishReason ?? null;
    const interrupts = this.finished.outcome?.type === "interrupt" ? this.finished.outcome.interrupts : [];
    const outcome = interrupts.length > 0 || finishReason === "tool_calls" ? "interrupted" : "completed";
    return { outcome, finishReason, interrupts };
  }

  /** The end of the turn before is not the end of the stream. */
  private beginTurn(): void {
    if (this.finished === undefined) return;
    this.finished = undefined;
    this.lastText = "";
  }

  private addUsage(usage: Extract<StreamChunk, { type: "RUN_FINISHED" }>["usage"]): void {
    const more = Array.isArray(usage) ? fromSpecTokenUsage(usage) : usage;
    if (more === undefined) return;
    const { promptTokens = 0, completionTokens = 0, totalTokens = 0 } = this.usage ?? {};
    this.usage = {
      promptTokens: promptTokens + more.promptTokens,
      completionTokens: completionTokens + more.completionTokens,
      totalTokens: totalTokens + more.totalTokens,
    };
  }
}

function objectOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "object" in value ? value.object : undefined;
}
