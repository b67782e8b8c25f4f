import type { Instructions, LanguageModel, ModelMessage, ToolSet } from "ai";
import type { BackgroundWork } from "../../context/background.ts";
import type { LiveState } from "../../context/carried.ts";
import type { Compactor } from "../../context/compactor.ts";
import type { LearnedFactors } from "../../context/learned.ts";
import type { ModelLimits } from "../../context/model-limits.ts";
import type { OverflowPolicy } from "../../context/overflow.ts";
import type { TokenCounters } from "../../context/token-counters.ts";
import type { ContextReader } from "../../context/view.ts";
import type { SessionSettings } from "../../session/session-settings.ts";
import type { Usage } from "../../ledger/token-usage.ts";

/** A request that was sent to a model, for who wants to know what fills its window. */
export interface SentRequest {
  readonly session: string;
  /** `provider/modelId` */
  readonly model: string;
  readonly instructions: Instructions | undefined;
  readonly tools: ToolSet;
  readonly messages: readonly ModelMessage[];
  readonly maxOutputTokens: number | undefined;
  /** What the provider counted. */
  readonly usage: Usage | undefined;
}

/** What the step loop needs to keep conversations within the windows of models. */
export interface ContextPlan {
  readonly reader: ContextReader;
  readonly compactor: Compactor;
  readonly background: BackgroundWork;
  readonly counters: TokenCounters;
  readonly learned: LearnedFactors;
  /** What is done when a conversation grows too long; undefined: nothing. @throws PerdureError `bad_config` */
  policy(): OverflowPolicy | undefined;
  /** @throws PerdureError `bad_config` */
  limits(model: string): ModelLimits;
  /** The model that summarises; undefined: the one that reads the summary. */
  summariser(): Promise<LanguageModel | undefined>;
  settings(session: string): Promise<SessionSettings>;
  /** What is true now and must not depend on a summary. */
  live(session: string): LiveState;
  /** Messages as a model (`provider/modelId`) is shown them: no output is too long for it. @throws PerdureError `bad_config` */
  bounded(model: string, messages: readonly ModelMessage[]): ModelMessage[];
  /** A request was answered. Must be quick, must not throw. */
  sent(request: SentRequest): void;
}
