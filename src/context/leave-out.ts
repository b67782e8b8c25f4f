import type { CompactionEnd } from "../store/compaction.ts";
import { type CompactionJob, endOf, sizeOf, wholeOf } from "./compaction-job.ts";
import { type Cut, findCut, tailBudget } from "./cut.ts";
import { withLeftOut } from "./sections.ts";
import { leftOutNote, messagesIn } from "./summarise.ts";

/** What would be left out, and what would be stored of it. */
export interface Truncation {
  readonly cut: Cut;
  readonly end: CompactionEnd;
}

/**
 * What is left out of a request that a provider has refused, when no summary of it can be had: what a summary would
 * cover, or, if that is not less than what was sent, all but the user's last message and the last step.
 * @param tight as little is kept as there can be.
 * @param why there is no summary, for a person.
 * @returns undefined when nothing would be shorter then.
 */
export function planTruncation(job: CompactionJob, tight: boolean, why: string): Truncation | undefined {
  const { measure, open } = job;
  const view = wholeOf(job);
  const size = sizeOf(job.view(), measure);
  const usual = () => findCut(view, measure, tailBudget(measure.usable, size - measure.fixed), open);
  // The last step has not been read yet: it stays, whatever else goes.
  const least = () => findCut(view, { ...measure, usable: 0 }, 0, false);
  for (const find of tight ? [least] : [usual, least]) {
    const cut = find();
    if (cut === undefined) continue;
    const ids = messagesIn(cut.covered);
    const text = withLeftOut(view.compaction?.summary ?? "", [leftOutNote(ids)]);
    const { end } = endOf(job, view, cut, { kind: "truncate", text, leftOut: ids.length });
    if ((end.tokensAfter ?? size) < Math.round(size)) return { cut, end: { ...end, error: toPerson(why, ids.length) } };
  }
  return undefined;
}

function toPerson(why: string, count: number): string {
  const what = count === 1 ? "One message was" : `${count} messages were`;
  return `The provider refused the conversation as too long, and there is no summary of it. ${why} ${what} left out of what the model reads; nothing was deleted. A summary is tried again when the next turn begins.`;
}
