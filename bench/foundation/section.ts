/** One line of a result: a figure of ours, beside the same work without us where there is one. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** The floor: the same work done bare, in the same run. */
  readonly bare?: number;
  /** What the floor is. */
  readonly against?: string;
}

/** Results that are not set beside a floor. The first column is text, the others are figures. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** What is to be said of this run alone. */
  readonly notes?: readonly string[];
  /** What is far from where it should be: `--check` fails. */
  readonly far?: readonly string[];
}

/** A part of `bench/RESULTS.md`, measured in one go. */
export interface Section {
  readonly title: string;
  /** How to read it. */
  readonly notes: readonly string[];
  run(say: (text: string) => void): Promise<readonly Figure[] | Table>;
}

/** How many times slower (or larger) than the floor; rates are turned around so that more is always worse. */
export function ratioOf({ ours, bare, unit }: Figure): number | undefined {
  if (bare === undefined) return undefined;
  return unit.endsWith("/s") ? bare / ours : ours / bare;
}

/** The section as Markdown. */
export function toMarkdown({ title, notes }: Section, results: readonly Figure[] | Table, machine: string): string {
  const { head, rows, notes: now = [] } = "rows" in results ? results : besideFloors(results);
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    `## ${title}`,
    "",
    machine,
    "",
    line(head),
    line(head.map((name, at) => (at === 0 || name === "unit" ? "---" : "---:"))),
    ...rows.map(line),
    "",
    ...[...notes, ...now].map((note) => `- ${note}`),
    "",
  ].join("\n");
}

function besideFloors(figures: readonly Figure[]): Table {
  return {
    head: ["what", "Perdure", "unit", "floor", "cost"],
    rows: figures.map((figure) => {
      const ratio = ratioOf(figure);
      const bare = figure.bare === undefined ? "" : `${format(figure.bare)} (${figure.against ?? "bare"})`;
      return [figure.what, format(figure.ours), figure.unit, bare, ratio === undefined ? "" : `${ratio.toFixed(2)}x`];
    }),
  };
}

/** Replaces the section of that title in a document, or adds it at the end. */
export function replaceSection(document: string, title: string, text: string): string {
  const parts = document.split(/^(?=## )/m);
  const at = parts.findIndex((part) => part.startsWith(`## ${title}\n`));
  if (at < 0) return `${document.trimEnd()}\n\n${text}`;
  parts[at] = `${text}\n`;
  return `${parts.join("").trimEnd()}\n`;
}

/** Three digits are all that such a measurement is good for. */
export function format(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
