import { askOwn, type CompactionJob, type Found } from "./compaction-job.ts";
import type { Cut } from "./cut.ts";
import { summarise } from "./summarise.ts";
import type { ContextView } from "./view.ts";

/** The length of a summary, in tokens and as a share of what a request may hold. */
const MAX_SUMMARY_TOKENS = 2_500;
const SUMMARY_SHARE = 0.08;
const MIN_SUMMARY_TOKENS = 200;

/** Gets the summary of a job: from the app if it has its own way, else from a model. @throws what the app throws. */
export function summaryFor(job: CompactionJob, view: ContextView, cut: Cut): Promise<Found> {
  const { summariser, measure, focus, own } = job;
  if (own !== undefined) return askOwn(job, own, view);
  const share = Math.floor(SUMMARY_SHARE * measure.usable);
  return summarise({
    cut,
    prior: view.compaction?.summary ?? undefined,
    focus,
    instructions: summariser.instructions,
    ask: summariser.ask,
    measure: summariser.measure ?? measure,
    room: summariser.room,
    reader: measure,
    length: Math.max(MIN_SUMMARY_TOKENS, Math.min(MAX_SUMMARY_TOKENS, share)),
  });
}
