// The guide at work with its tools. A pure function of the conversation, like the rest of it: where it stands is read from
// the calls that were made.
import type { GuideReply } from "./guide-reply.ts";
import { lastAsked, replyTo, replyWith } from "./guide-reply.ts";
import { summaryFor } from "./guide-summary.ts";
import { type Group, TOUR, type TourStep } from "./guide-tour.ts";
import { readOutput, type Said } from "./said.ts";
import type { ModelPrompt } from "./model-types.ts";

const ALL: readonly Group[] = [...new Set(TOUR.map(({ group }) => group))];

/** What is said of the guide's tools, and what it shows then. */
const TOPICS: readonly { readonly asked: RegExp; readonly groups: readonly Group[] }[] = [
  { asked: /\b(?:every|all)\b.*\btools?\b|\btour\b/i, groups: ALL },
  { asked: /\bcount\b.*\bwords?\b/i, groups: ["counting"] },
  { asked: /\bextensions?\b/i, groups: ["extension"] },
  { asked: /\bskills?\b/i, groups: ["skill"] },
  { asked: /^(?!.*\bmarkdown\b).*\b(?:code|execute|sandbox)\b/is, groups: ["code"] },
  { asked: /^(?!.*(?:attach|upload|send|sent|delet|picture|image)).*\b(?:files|workspace)\b/is, groups: ["files"] },
];

/** What helpers report when they are done is no question. */
const REPORT = /^The background work of /;

/** Whether the guide needs all of its tools to answer this. */
export function isAboutTools(text: string): boolean {
  return groupsFor(text) !== undefined;
}

/** The guide's reply where it may call these tools: about them, or as it always is. */
export function replyWithTools(prompt: ModelPrompt, offered: readonly string[]): GuideReply {
  const groups = groupsFor(lastAsked(prompt));
  if (groups === undefined) return replyTo(prompt);
  const steps = TOUR.filter(({ group }) => groups.includes(group));
  return (
    summaryFor(prompt) ??
    replyWith(
      prompt,
      () => takeStep(steps, [], offered),
      (since) => takeStep(steps, since, offered),
    )
  );
}

function groupsFor(text: string): readonly Group[] | undefined {
  return REPORT.test(text) ? undefined : TOPICS.find(({ asked }) => asked.test(text))?.groups;
}

interface Round {
  readonly calls: readonly string[];
  readonly said: readonly Said[];
}

/** Says what came of the last step and does the next: the first that was not done and whose tools are there. */
function takeStep(steps: readonly TourStep[], since: ModelPrompt, offered: readonly string[]): GuideReply {
  const rounds = roundsOf(since);
  const known = [...offered, ...rounds.flatMap(({ calls }) => calls)];
  const ended: { readonly step: TourStep; readonly round: Round }[] = [];
  const used = new Map<string, number>();
  let next: TourStep | undefined;
  for (const step of steps) {
    const names = namesOf(step, known);
    const [first] = names;
    if (first === undefined) continue;
    const round = rounds.filter(({ calls }) => calls[0] === first)[used.get(first) ?? 0];
    used.set(first, (used.get(first) ?? 0) + 1);
    if (round !== undefined) ended.push({ step, round });
    else if (namesOf(step, offered).length > 0) next ??= step;
  }
  const last = ended.find(({ round }) => round === rounds.at(-1));
  const came = last?.step.after(last.round.said) ?? "";
  const all = rounds.flatMap(({ said }) => said);
  if (next === undefined) return { text: joined(came, steps === TOUR || isWhole(steps) ? END : "") };
  const inputs = next.inputs(all);
  const calls = namesOf(next, offered).map((toolName, at) => ({ toolName, input: inputs[at] ?? {} }));
  return { text: joined(came, next.before), calls };
}

const END = "That was every tool that I have here. All of it is stored: reload the page and look.";

function isWhole(steps: readonly TourStep[]): boolean {
  return steps.length === TOUR.length;
}

/** The names of a step's tools; none when one of them is not there. `…_x` is the tool whose name ends like that. */
function namesOf({ tools }: TourStep, known: readonly string[]): string[] {
  const names = tools.flatMap(
    (name) => known.find((one) => (name[0] === "*" ? one.endsWith(name.slice(1)) : one === name)) ?? [],
  );
  return names.length === tools.length ? names : [];
}

/** The calls so far, and what came of them: those that were made side by side are one round. */
function roundsOf(since: ModelPrompt): Round[] {
  const rounds: Round[] = [];
  for (const { role, content } of since) {
    if (role === "assistant") {
      const calls = content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : []));
      if (calls.length > 0) rounds.push({ calls, said: [] });
    } else if (role === "tool") {
      const said = content.flatMap((part) =>
        part.type === "tool-result" ? [readOutput(part.toolName, part.output)] : [],
      );
      const round = rounds.pop();
      if (round !== undefined) rounds.push({ ...round, said: [...round.said, ...said] });
    }
  }
  return rounds;
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}
