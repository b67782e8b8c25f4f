import type { InferToolOutput, ModelMessage, StaticToolCall, ToolSet } from "ai";
import type { Identity } from "../base/identity.ts";

/** A call of whatever tool. */
interface AnyCall {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** Of a tool that is not declared in code. */
  readonly dynamic?: boolean;
}

/** With the names and inputs of `TOOLS`, where these are given. Tools that are not among them look like one of them. */
type CallOf<TOOLS extends ToolSet> = [ToolSet] extends [TOOLS] ? AnyCall : ValidCall<StaticToolCall<TOOLS>>;

/** Only calls that could be read get as far as a hook. */
type ValidCall<CALL> = CALL extends unknown ? Omit<CALL, "error" | "invalid"> : never;

/** With the output that each tool declares. It is what was stored: plain JSON, and cut where it was too long. */
type AnsweredCallOf<TOOLS extends ToolSet> = [ToolSet] extends [TOOLS]
  ? AnyCall & { readonly output: unknown }
  : {
      [NAME in keyof TOOLS & string]: ValidCall<Extract<StaticToolCall<TOOLS>, { toolName: NAME }>> & {
        readonly output: InferToolOutput<TOOLS[NAME]>;
      };
    }[keyof TOOLS & string];

interface CallSurroundings {
  readonly stepNumber: number;
  /** For whom the turn is. */
  readonly identity?: Identity;
  readonly messages: readonly ModelMessage[];
  readonly abortSignal: AbortSignal;
}

/** What `beforeToolCall` is told. */
export type ToolCallContext<TOOLS extends ToolSet = ToolSet> = CallOf<TOOLS> & CallSurroundings;

/** What becomes of a tool call. */
export type ToolCallDecision =
  | { readonly action: "allow"; readonly input?: unknown }
  /** It does not run; the model reads `reason` as its output. */
  | { readonly action: "block"; readonly reason?: string }
  /** It does not run; the model reads `output`. */
  | { readonly action: "substitute"; readonly output: unknown };

/** What `afterToolCall` is told. */
export type ToolCallResultContext<TOOLS extends ToolSet = ToolSet> = CallSurroundings & {
  readonly durationMs: number;
} & (
    | (AnsweredCallOf<TOOLS> & { readonly success: true; readonly error?: undefined })
    | (CallOf<TOOLS> & { readonly success: false; readonly error: unknown; readonly output?: undefined })
  );

/** What becomes of a result before anybody reads it. Nothing: it stays what it is. What was returned is kept. */
export type ToolResultDecision =
  /** The model and the clients read `output`, whether the tool failed or not. */
  | { readonly action: "replace"; readonly output: unknown }
  /** They read `reason` as its output. */
  | { readonly action: "withhold"; readonly reason?: string };
