import { styleText } from "node:util";

type Row = Readonly<Record<string, unknown>>;

const GAP = "  ";
/** How wide a column that may be cut is at least, and at most where nobody looks. */
const LEAST_CELL = 10;
const MOST_CELL = 60;
/** What people say or send. Everything else is whole, as it is to be copied. */
const MAY_BE_CUT: ReadonlySet<string> = new Set(["name", "input", "error", "summary", "detail", "subject"]);
const SECOND = 1000;
const UNITS = [
  { unit: "d", ms: 24 * 3600 * SECOND },
  { unit: "h", ms: 3600 * SECOND },
  { unit: "min", ms: 60 * SECOND },
  { unit: "s", ms: SECOND },
] as const;
const MEBIBYTE = 1024 * 1024;

/** Rows under their names, as wide as the terminal. Columns with nothing in them are left out. */
export function toTable(rows: readonly Row[], names: readonly string[]): string {
  const used = names.filter((name) => rows.some((row) => toCell(name, row[name]) !== ""));
  const cells = rows.map((row) => used.map((name) => toCell(name, row[name])));
  const widths = used.map((name, at) => Math.max(toHead(name).length, ...cells.map((row) => row[at]?.length ?? 0)));
  narrow(used, widths);
  const isRight = used.map((name) => rows.every((row) => typeof row[name] === "number") && !isTime(name));
  const toLine = (row: readonly string[]) =>
    row
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        return isRight[at] === true ? cell.padStart(width) : cut(cell, width).padEnd(width);
      })
      .join(GAP)
      .trimEnd();
  return [dim(toLine(used.map(toHead))), ...cells.map(toLine)].join("\n");
}

/** Makes what may be cut narrower, the widest first, until a line fits. */
function narrow(names: readonly string[], widths: number[]): void {
  const flexible = names.flatMap((name, at) => (MAY_BE_CUT.has(name) ? [at] : []));
  for (const at of flexible) widths[at] = Math.min(widths[at] ?? 0, MOST_CELL);
  const room = terminalWidth();
  const total = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  while (total() > room) {
    const [widest] = flexible.sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (widest === undefined || (widths[widest] ?? 0) <= LEAST_CELL) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

/** Names and values under each other. What is empty is left out. */
export function toFields(fields: Row): string {
  const shown = Object.entries(fields).flatMap(([name, value]) => {
    const cell = toCell(name, value);
    return cell === "" ? [] : [[harmless(toHead(name)), cell] as const];
  });
  const width = Math.max(...shown.map(([head]) => head.length));
  return shown.map(([head, cell]) => `${dim(head.padEnd(width))}${GAP}${cell}`).join("\n");
}

/** One value in one line. */
function toCell(name: string, value: unknown): string {
  if (value === null || value === undefined || value === false) return "";
  if (value === true) return "yes";
  if (typeof value === "number") {
    if (name === "usd") return value === 0 ? "0" : value.toFixed(4);
    if (isTime(name)) return toAge(value - Date.now());
    if (name.endsWith("Ms")) return toSpan(value);
    return name.endsWith("Bytes") ? `${Math.round(value / MEBIBYTE)} MiB` : String(value);
  }
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return harmless(value.join(", "));
  return harmless(typeof value === "string" ? value : JSON.stringify(value)).replaceAll(/\s+/g, " ");
}

/** How long ago, or in how long: the same in every time zone. */
function toAge(ms: number): string {
  return ms > 0 ? `in ${toSpan(ms)}` : `${toSpan(-ms)} ago`;
}

function toSpan(ms: number): string {
  const { unit, ms: size } = UNITS.find((one) => ms >= one.ms) ?? { unit: "s", ms: SECOND };
  return `${Math.floor(ms / size)} ${unit}`;
}

/** Without what a terminal would take for a command, or show in another order than it is. */
export function harmless(text: string): string {
  return text.replaceAll(/(?![\n\t\u{200d}])[\p{Cc}\p{Cf}]/gu, "\u{fffd}");
}

/** JSON that says the same, without what a terminal would take for a command: it escapes only the older half of them by itself. */
export function harmlessJson(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replaceAll(/[\p{Cc}\p{Cf}]/gu, (letter) => letter.split("").map(escaped).join(""));
}

/** As much of a text as fits. */
export function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
}

/** What is beside the point, in a terminal. */
export function dim(text: string): string {
  return styleText("dim", text, { stream: process.stdout });
}

/** How wide a line may be. No limit where no person reads. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
}

function isTime(name: string): boolean {
  return name === "at" || name.endsWith("At");
}

function toHead(name: string): string {
  return name === "usd" ? "$" : name.replace(/(?:At|Ms|Bytes)$/, "");
}
