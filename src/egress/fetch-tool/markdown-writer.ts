/** Where text goes that is being read: paragraphs, in lists and quotes. */
export interface MarkdownWriter {
  /** Adds to the paragraph under way. Spaces are folded. */
  text(text: string): void;
  /** Adds as it is. */
  mark(text: string): void;
  /** The length of the paragraph under way, for {@link wrap}. */
  position(): number;
  /** Puts something around what was added since `from`. Nothing happens when nothing was. */
  wrap(from: number, around: (inner: string) => string): void;
  lineBreak(): void;
  /** Ends the paragraph, with `prefix` in front of it. */
  endBlock(prefix?: string): void;
  /** Writes lines as they are. */
  lines(lines: readonly string[]): void;
  openList(ordered: boolean): void;
  openItem(): void;
  closeList(): void;
  openQuote(): void;
  closeQuote(): void;
  /** Collects what comes into one line of its own, until {@link endCell}. */
  startCell(): void;
  endCell(): string;
  /** Too much was written: stop. */
  isFull(): boolean;
  result(): string;
}

type Container = { readonly kind: "quote" } | { readonly kind: "list"; readonly ordered: boolean; count: number; fresh: boolean };

const MAX_CHARS = 2_000_000;
/** Deeper ones are written as if they were not nested: their indentation would be all there is. */
const MAX_CONTAINERS = 12;

export function createMarkdownWriter(): MarkdownWriter {
  const out: string[] = [];
  const containers: Container[] = [];
  let ignored = 0;
  let size = 0;
  let paragraph = "";
  /** Paragraphs that wait while cells are read. */
  const outer: string[] = [];
  let tight = false;

  const put = (line: string) => {
    out.push(line);
    size += line.length + 1;
  };
  const indent = (first: boolean): string =>
    containers
      .map((one) => {
        if (one.kind === "quote") return "> ";
        const sign = one.ordered ? `${one.count}. ` : "- ";
        if (!first || !one.fresh) return " ".repeat(sign.length);
        one.fresh = false;
        return sign;
      })
      .join("");
  const write = (lines: readonly string[]) => {
    const isItem = containers.some((one) => one.kind === "list" && one.fresh);
    if (out.length > 0 && !(isItem && tight)) put(indent(false).trimEnd());
    tight = containers.some((one) => one.kind === "list");
    for (const [index, line] of lines.entries()) put(`${indent(index === 0)}${line}`.trimEnd());
  };
  const endBlock = (prefix = "") => {
    if (outer.length > 0) {
      if (paragraph !== "" && !paragraph.endsWith(" ")) paragraph += " ";
      return;
    }
    const text = paragraph.trim();
    paragraph = "";
    if (text !== "") write(text.split("\n").map((line, index) => (index === 0 ? `${prefix}${line.trim()}` : line.trim())));
  };
  const close = (kind: Container["kind"]) => {
    endBlock();
    if (ignored > 0) ignored -= 1;
    else if (containers.at(-1)?.kind === kind) containers.pop();
  };
  const open = (container: Container) => {
    endBlock();
    if (containers.length >= MAX_CONTAINERS) ignored += 1;
    else containers.push(container);
  };

  return {
    text(text) {
      const folded = text.replace(/\s+/g, " ");
      const atStart = paragraph === "" || /\s$/.test(paragraph);
      paragraph += atStart ? folded.trimStart() : folded;
    },
    mark: (text) => void (paragraph += text),
    position: () => paragraph.length,
    wrap(from, around) {
      const inner = paragraph.slice(from);
      const bare = inner.trim();
      if (bare === "") return;
      const before = inner.slice(0, inner.indexOf(bare));
      const after = inner.slice(before.length + bare.length);
      paragraph = `${paragraph.slice(0, from)}${before}${around(bare)}${after}`;
    },
    lineBreak: () => void (paragraph = `${paragraph.trimEnd()}${outer.length > 0 ? " " : "\n"}`),
    endBlock,
    lines(lines) {
      endBlock();
      if (outer.length > 0) paragraph += `${lines.join(" ")} `;
      else write(lines);
    },
    openList: (ordered) => open({ kind: "list", ordered, count: 0, fresh: false }),
    openItem() {
      endBlock();
      const list = containers.at(-1);
      if (list?.kind !== "list") return;
      list.count += 1;
      list.fresh = true;
    },
    closeList: () => close("list"),
    openQuote: () => open({ kind: "quote" }),
    closeQuote: () => close("quote"),
    startCell() {
      if (outer.length === 0) endBlock();
      outer.push(paragraph);
      paragraph = "";
    },
    endCell() {
      const text = paragraph.replace(/\s+/g, " ").trim();
      paragraph = outer.pop() ?? "";
      return text;
    },
    isFull: () => size + paragraph.length > MAX_CHARS,
    result() {
      endBlock();
      return out.join("\n").replace(/\n{3,}/g, "\n\n").trim();
    },
  };
}
