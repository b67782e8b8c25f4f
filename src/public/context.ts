// What the model is sent and what it costs: memory blocks, compaction, limits of models, prices.
export { defaultPrices } from "../ledger/default-prices.ts";
export type { Price, PriceTable } from "../ledger/prices.ts";
export { estimateTokens } from "../context/estimate.ts";
export { PRUNE_MINIMUM, PRUNE_PROTECT } from "../context/prune.ts";
export type { OutputSubject } from "../context/superseded.ts";
export { type CallTokens, isOverflow, type OverflowLimits } from "../context/token-budget.ts";
export type { TextCounter } from "../context/token-counters.ts";
export type { CompactionInfo } from "../wire/session-types.ts";
export type { AppliedCompaction } from "../parts/window.ts";
export type { LiveState, TouchedFile } from "../context/carried.ts";
export type { DraftCompaction } from "../wire/session-types.ts";
export { defaultModelLimits } from "../context/default-model-limits.ts";
export type { ContextOverflow } from "../context/overflow.ts";
export type { ModelLimits, ModelLimitsTable } from "../context/model-limits.ts";
export type { ContextItem, ContextItemKind, ContextReport, LeftOutItem, LeftOutKind } from "../wire/session-types.ts";
export type { ContextBlock, ContextBlocks } from "../memory/context-blocks.ts";
export type { ContextOptions } from "../memory/definition.ts";
export type {
  ContextHit,
  ContextKind,
  ContextProvider,
  LoadableContext,
  ReadOnlyContext,
  SearchableContext,
  WritableContext,
} from "../memory/provider.ts";
export {
  type ContextEntries,
  type ContextEntry,
  type KeyDescription,
  loadableContext,
  loadableFrom,
  searchableFrom,
  staticContext,
} from "../memory/providers.ts";
