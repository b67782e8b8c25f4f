/** The section that code writes: what nobody has read for a summary. */
const LEFT_OUT = "Left out";
/** The most lines of it; of more, the last ones are told. */
const MAX_NOTES = 10;
/** What a model writes under a heading to empty the section, and instead of a summary that stays as it is. */
export const EMPTY = "(empty)";
export const NO_CHANGE = "(no change)";
const IS_EMPTY = /^[(*_]*(?:empty|none)[)*_.]*$/i;
const IS_NO_CHANGE = /^[-\s(*_]*(?:no changes?|unchanged)[)*_.]*$/i;
const HEADING = /^(#{1,6})[ \t]+(.+?)[ \t]*#*$/;
const FENCE = /^ {0,3}(?:```|~~~)/;
const WRAPPED = /^(?:```|~~~)(?:markdown|md)?[ \t]*\n([\s\S]*?)\n(?:```|~~~)$/;

interface Section {
  /** How sections are told apart. */
  readonly key: string;
  /** With the heading, and all up to the next one, as it stands there. */
  readonly text: string;
}

interface Sections {
  /** What stands before the first heading. */
  readonly head: string;
  readonly list: readonly Section[];
}

/**
 * Merges what a model wrote into a summary: a section replaces the one with its heading or is added; {@link EMPTY} removes it;
 * {@link NO_CHANGE}, or no mention, keeps it byte for byte. Text without headings replaces only what stands before the first one.
 * @param names of the sections that there should be, in their order.
 */
export function patchSummary(prior: string | undefined, answer: string, names: readonly string[]): string {
  const text = answer.replaceAll("\r\n", "\n").trim();
  const said = withoutOwn((WRAPPED.exec(text)?.[1] ?? text).trim());
  const wanted = names.map(keyOf);
  if (prior === undefined || prior === "") return said;
  if (IS_NO_CHANGE.test(said)) return prior;
  const before = parse(prior, wanted);
  const after = parse(said, [...wanted, ...before.list.map(({ key }) => key)]);
  const changes = new Map<string, string>();
  for (const { key, text } of after.list) {
    // Nothing under a heading says nothing.
    const body = bodyOf(text);
    if (body === "" || IS_NO_CHANGE.test(body)) continue;
    const known = changes.get(key);
    changes.set(key, known === undefined ? text.trimEnd() : `${known}\n${body}`);
  }
  const list: Section[] = [];
  const replaced = new Set<string>();
  for (const section of before.list) {
    const { key, text } = section;
    const change = changes.get(key);
    if (change === undefined) list.push(section);
    else if (!replaced.has(key) && !IS_EMPTY.test(bodyOf(change))) list.push({ key, text: change + endOf(text) });
    if (change !== undefined) replaced.add(key);
  }
  for (const [key, text] of changes) {
    if (!replaced.has(key) && !IS_EMPTY.test(bodyOf(text))) place(list, { key, text }, wanted);
  }
  // What stands above headings may be a polite sentence: it takes the place of no summary that has none.
  const isPolite = isAnnouncement(after.head) || before.list.length === 0;
  const free = after.list.length > 0 && isPolite ? "" : after.head.trim();
  const head = free === "" ? before.head : `${free}\n\n`;
  return join(head, list);
}

/** The same with lines on what was left out, in a section that only code writes. */
export function withLeftOut(summary: string, notes: readonly string[]): string {
  if (notes.length === 0) return summary;
  const { head, list } = parse(summary, []);
  const own = list.find(({ key }) => key === keyOf(LEFT_OUT));
  const lines = [...(own === undefined ? [] : bodyOf(own.text).split("\n")), ...notes].slice(-MAX_NOTES);
  const text = `## ${LEFT_OUT}\n${lines.join("\n")}`;
  return join(head, [...list.filter((one) => one !== own), { key: keyOf(LEFT_OUT), text }]);
}

/** What a model wrote, without what only code may say: a heading of that name, however deep, and all up to the next one. */
function withoutOwn(text: string): string {
  const headings = headingsIn(text);
  const own = headings.filter(({ key }) => key === keyOf(LEFT_OUT));
  let rest = text;
  for (const { at } of own.toReversed()) {
    const next = headings.find((one) => one.at > at)?.at ?? text.length;
    rest = rest.slice(0, at) + rest.slice(next);
  }
  return own.length === 0 ? text : rest.trim();
}

interface Heading {
  readonly at: number;
  readonly level: number;
  readonly key: string;
}

function headingsIn(text: string): Heading[] {
  const headings: Heading[] = [];
  let at = 0;
  let fenced = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) fenced = !fenced;
    const [, marks = "", name = ""] = fenced ? [] : (HEADING.exec(line) ?? []);
    if (marks !== "") headings.push({ at, level: marks.length, key: keyOf(name) });
    at += line.length + 1;
  }
  return headings;
}

function parse(text: string, known: readonly string[]): Sections {
  const headings = headingsIn(text);
  // Headings of another level count where they are known, and nothing else divides the text.
  const plain = headings.filter(({ level, key }) => level === 2 || (level === 1 && known.includes(key)));
  const starts = plain.length > 0 ? plain : headings.filter(({ key }) => known.includes(key));
  const list = starts.map(({ at: from, key }, i) => ({ key, text: text.slice(from, starts[i + 1]?.at) }));
  return { head: text.slice(0, starts[0]?.at), list };
}

/** Before the first of those that should come behind it, or at the end. */
function place(list: Section[], section: Section, wanted: readonly string[]): void {
  const rank = wanted.indexOf(section.key);
  const next = rank === -1 ? -1 : list.findIndex(({ key }) => wanted.indexOf(key) > rank);
  const own = list.findIndex(({ key }) => key === keyOf(LEFT_OUT));
  const at = next === -1 ? (own === -1 ? list.length : own) : next;
  list.splice(at, 0, section);
}

function join(head: string, list: readonly Section[]): string {
  let text = head;
  for (const one of list) text += `${text === "" || text.endsWith("\n") ? "" : "\n\n"}${one.text}`;
  return text.trim();
}

function bodyOf(section: string): string {
  const end = section.indexOf("\n");
  return end === -1 ? "" : section.slice(end + 1).trim();
}

function endOf(section: string): string {
  return section.slice(section.trimEnd().length);
}

function isAnnouncement(text: string): boolean {
  const line = text.trim();
  return line === "" || (!line.includes("\n") && (line.endsWith(":") || line.startsWith("#")));
}

function keyOf(name: string): string {
  return name
    .replace(/^[\d.)\s]+/, "")
    .replaceAll(/[*_`:]/g, "")
    .trim()
    .toLowerCase();
}
