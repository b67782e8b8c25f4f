import type { Instructions, LanguageModel, ToolSet } from "ai";
import type { CompactionJob } from "../../context/compaction-job.ts";
import { type Measure, measureFor } from "../../context/measure.ts";
import { project, type ContextView } from "../../context/view.ts";
import { type Convert, WEIGHED, weighShown } from "../../context/measure.ts";
import type { CountText } from "../../context/text-units.ts";
import { usable } from "../../context/token-budget.ts";
import { unitsOfInstructions, unitsOfTools } from "../../context/units.ts";
import { nameOf } from "../../model/call.ts";
import { askWith, type SummaryCaller } from "../../model/summary-call.ts";
import { SESSION_SEARCH_TOOL } from "../../search/search-text.ts";
import { outputRules } from "../../tool/output-rules.ts";
import { ownerIdOf } from "../../store/session.ts";
import { sessionSearchTool } from "../../tool/session-search.ts";
import type { ContextWindow } from "./parts.ts";

/** A request that may have to become shorter. */
export interface RequestNow {
  readonly model: LanguageModel;
  readonly instructions: Instructions | undefined;
  readonly tools: ToolSet;
  /** The most that it may hold, in tokens; without an own bound of the agent, infinite. */
  readonly bound: number;
  /** What the model is shown now. */
  view(): ContextView;
  /** What stored messages become for the model, each apart, with outputs as long as they are. */
  readonly shown: Convert;
}

/** How long a request is, by what the model reads now. */
export async function measureNow(context: ContextWindow, request: RequestNow): Promise<Measure> {
  const { instructions, tools, bound } = request;
  const name = nameOf(request.model);
  const count = context.counters.of(name);
  const fixed = unitsOfInstructions(instructions, count) + unitsOfTools(tools, count);
  const convert: Convert = async (messages) => {
    const whole = await request.shown(messages);
    return whole.map((one) => ({ ...one, converted: context.bounded(name, one.converted) }));
  };
  const shown = await weighShown(project(request.view()), convert, WEIGHED * bound, count);
  const factor = context.learned.of(name);
  return { ...measureFor(factor, fixed, bound, shown, count), added: factor * addedBy(tools, count) };
}

/** What a first compaction adds to all requests after it: the tool by which the model looks up what is not shown. */
function addedBy(tools: ToolSet, count: CountText): number {
  if (Object.hasOwn(tools, SESSION_SEARCH_TOOL)) return 0;
  const tool = sessionSearchTool({ search: NO_SEARCH, session: () => "" });
  return unitsOfTools({ [SESSION_SEARCH_TOOL]: tool }, count) + count(SEARCH_LINE);
}

const NO_SEARCH = { searchLoosely: () => Promise.resolve([]), read: () => Promise.resolve(undefined) };
/** About what the instructions say of it. */
const SEARCH_LINE = `, ${SESSION_SEARCH_TOOL}\n- You can search what was said earlier.`;

/** One compaction that is wanted, of whatever reason. */
type JobNow = Pick<CompactionJob, "session" | "trigger" | "turn" | "open" | "focus" | "whole" | "signal"> &
  RequestNow & {
    /** In whose books the model that summarises is called. */
    readonly books: Omit<SummaryCaller, "model" | "maxOutput" | "counts" | "purpose" | "session" | "signal">;
  };

/** The job of a compaction. @throws PerdureError `bad_config` */
export async function jobNow(context: ContextWindow, now: JobNow): Promise<CompactionJob> {
  const { session, trigger, turn, open, focus, whole, signal, books, instructions } = now;
  const model = (await context.summariser()) ?? now.model;
  const name = nameOf(model);
  const limits = context.limits(name);
  const { compact } = await context.settings(session);
  const { learned, counters } = context;
  return {
    ...{ session, trigger, turn, open, focus, whole, signal, own: compact },
    view: () => now.view(),
    measure: await measureNow(context, now),
    summariser: {
      model: name,
      room: usable(limits),
      measure: measureFor(learned.of(name), 0, usable(limits), undefined, counters.of(name)),
      ask: (prompt, stop) =>
        askWith({
          ...{ ...books, session: ownerIdOf(books.host, session), model, signal: stop, maxOutput: limits.output },
          ...{ purpose: "compaction", counts: context },
        })(prompt),
      instructions: typeof instructions === "string" ? instructions : undefined,
    },
    live: () => context.live(session),
    ...outputRules(now.tools),
  };
}
