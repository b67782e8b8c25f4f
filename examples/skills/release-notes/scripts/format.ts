import type { SkillRunContext } from "perdure";
import { kinds, type Kind, titles } from "./kinds.ts";

interface Change {
  readonly kind: Kind;
  readonly text: string;
  readonly issue?: number;
}

interface Input {
  readonly version: string;
  readonly date?: string;
  readonly changes: readonly Change[];
}

const MAX_SENTENCE = 120;

/** Sorts changes by kind, checks each sentence against the style guide, and writes `release-notes.md`. */
export default async function run(input: Input, ctx: SkillRunContext) {
  if (!Array.isArray(input?.changes) || typeof input.version !== "string") {
    throw new Error('Give { "version": "1.4.0", "changes": [{ "kind": "fixed", "text": "…" }] }.');
  }
  const counts: Partial<Record<Kind, number>> = {};
  let markdown = `## ${input.version}${input.date === undefined ? "" : ` (${input.date})`}\n`;
  for (const kind of kinds) {
    const changes = input.changes.filter((change) => change.kind === kind);
    if (changes.length === 0) continue;
    counts[kind] = changes.length;
    const lines = changes.map(({ text, issue }) => `- ${text}${issue === undefined ? "" : ` (#${issue})`}`);
    markdown += `\n### ${titles[kind]}\n\n${lines.join("\n")}\n`;
  }
  const problems = input.changes.flatMap(problemsOf);
  await ctx.output.writeFile("release-notes.md", markdown);
  return { markdown, counts, problems };
}

function problemsOf({ kind, text }: Change): string[] {
  const found: string[] = [];
  if (!kinds.includes(kind)) found.push(`"${kind}" is no kind; there are ${kinds.join(", ")}: ${text}`);
  if (text.length > MAX_SENTENCE) found.push(`Longer than ${MAX_SENTENCE} characters: ${text}`);
  if (!text.endsWith(".")) found.push(`No full stop at its end: ${text}`);
  if (/!|\b[Ww]e\b/.test(text)) found.push(`No exclamation marks and no "we": ${text}`);
  return found;
}
