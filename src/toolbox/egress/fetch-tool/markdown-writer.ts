type Container =
  | { readonly kind: "quote" }
  | { readonly kind: "list"; readonly ordered: boolean; count: number; fresh: boolean };

const MAX_CHARS = 2_000_000;
/** Deeper ones are written as if they were not nested: their indentation would be all there is. */
const MAX_CONTAINERS = 12;
/** A link or a bold text of more characters is left bare. This bounds what nested ones cost. */
const MAX_WRAPPED_CHARS = 1_000;

/** The text of one paragraph or cell, in pieces: adding to a long text again and again would copy it each time. */
interface Paragraph {
  pieces: string[];
  size: number;
}

/** Where text goes that is being read: paragraphs, in lists and quotes. */
export type MarkdownWriter = ReturnType<typeof createMarkdownWriter>;

export function createMarkdownWriter() {
  const out: string[] = [];
  const containers: Container[] = [];
  let ignored = 0;
  let size = 0;
  let paragraph: Paragraph = { pieces: [], size: 0 };
  /** Paragraphs that wait while cells are read. */
  const outer: Paragraph[] = [];
  /** How deep the last line was, and whether it was one of a list. */
  let last = { depth: 0, inList: false };

  const add = (text: string) => {
    if (text === "") return;
    paragraph.pieces.push(text);
    paragraph.size += text.length;
  };
  const take = (): string => {
    const text = paragraph.pieces.join("");
    paragraph = { pieces: [], size: 0 };
    return text;
  };
  const endsInSpace = () => {
    const piece = paragraph.pieces.at(-1) ?? " ";
    return " \n".includes(piece.at(-1) ?? " ");
  };
  const put = (line: string) => {
    out.push(line);
    size += line.length + 1;
  };
  const indent = (first: boolean, depth = containers.length): string =>
    containers
      .slice(0, depth)
      .map((one) => {
        if (one.kind === "quote") return "> ";
        const sign = one.ordered ? `${one.count}. ` : "- ";
        if (!first || !one.fresh) return " ".repeat(sign.length);
        one.fresh = false;
        return sign;
      })
      .join("");
  const write = (lines: readonly string[]) => {
    if (lines.length === 0) return;
    const isItem = containers.some((one) => one.kind === "list" && one.fresh);
    if (out.length > 0 && !(isItem && last.inList))
      put(indent(false, Math.min(last.depth, containers.length)).trimEnd());
    last = { depth: containers.length, inList: containers.some((one) => one.kind === "list") };
    for (const [index, line] of lines.entries()) put(`${indent(index === 0)}${line}`.trimEnd());
  };
  /** Ends the paragraph, with `prefix` in front of it. */
  const endBlock = (prefix = "") => {
    if (outer.length > 0) {
      if (!endsInSpace()) add(" ");
      return;
    }
    if (paragraph.size === 0) return;
    const lines = take()
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
    write(lines.map((line, index) => (index === 0 ? `${prefix}${line}` : line)));
  };
  const close = (kind: Container["kind"]) => {
    endBlock();
    if (ignored > 0) ignored -= 1;
    else if (containers.at(-1)?.kind === kind) containers.pop();
    if (containers.length === 0) last = { depth: 0, inList: false };
  };
  const open = (container: Container) => {
    endBlock();
    if (containers.length >= MAX_CONTAINERS) ignored += 1;
    else containers.push(container);
  };

  return {
    /** Adds to the paragraph under way. Spaces are folded. */
    text(text: string): void {
      const folded = text.replace(/\s+/g, " ");
      add(endsInSpace() ? folded.trimStart() : folded);
    },
    /** A place in the paragraph under way, for `wrap`. */
    position: () => paragraph.pieces.length,
    /** Puts something around what was added since `from`. Nothing happens when nothing was. */
    wrap(from: number, around: (inner: string) => string): void {
      const { pieces } = paragraph;
      let length = 0;
      for (let index = from; index < pieces.length; index++) {
        length += pieces[index]?.length ?? 0;
        if (length > MAX_WRAPPED_CHARS) return;
      }
      const inner = pieces.slice(from).join("");
      const bare = inner.trim();
      if (bare === "") return;
      const before = inner.slice(0, inner.indexOf(bare));
      const after = inner.slice(before.length + bare.length);
      pieces.length = from;
      paragraph.size -= length;
      for (const piece of [before, around(bare), after]) add(piece);
    },
    lineBreak: () => add(outer.length > 0 ? " " : "\n"),
    endBlock,
    /** Writes lines as they are. */
    lines(lines: readonly string[]): void {
      endBlock();
      if (outer.length > 0) add(`${lines.join(" ")} `);
      else write(lines);
    },
    openList: (ordered: boolean) => open({ kind: "list", ordered, count: 0, fresh: false }),
    openItem(): void {
      endBlock();
      const list = containers.at(-1);
      if (list?.kind !== "list") return;
      list.count += 1;
      list.fresh = true;
    },
    closeList: () => close("list"),
    openQuote: () => open({ kind: "quote" }),
    closeQuote: () => close("quote"),
    /** Collects what comes into one line of its own, until `endCell`. */
    startCell(): void {
      if (outer.length === 0) endBlock();
      outer.push(paragraph);
      paragraph = { pieces: [], size: 0 };
    },
    endCell(): string {
      const text = take().replace(/\s+/g, " ").trim();
      paragraph = outer.pop() ?? paragraph;
      return text;
    },
    /** Too much was written: stop. */
    isFull: () => size + paragraph.size > MAX_CHARS,
    result(): string {
      endBlock();
      return out.join("\n").trim();
    },
  };
}
