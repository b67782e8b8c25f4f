const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const LIST_ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)/;
/** A link or a footnote that is used elsewhere in the text. */
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/**
 * Cuts markdown into blocks that mean the same alone as together, so that a growing text only draws its last block
 * again. Joined with nothing between, they are the text. Where a cut could change the meaning there is none.
 */
export function splitBlocks(text: string): string[] {
  if (DEFINITION.test(text)) return [text];
  const blocks: string[] = [];
  let block = "";
  let fence = "";
  let isList = false;
  let afterBlank = false;
  for (const line of linesOf(text)) {
    const isBlank = line.trim() === "";
    const mark = FENCE.exec(line)?.[1] ?? "";
    if (fence === "" && afterBlank && !isBlank && !(isList && goesOnWithList(line))) {
      blocks.push(block);
      block = "";
    }
    if (block.trim() === "") isList = LIST_ITEM.test(line);
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = "";
    block += line;
    afterBlank = isBlank && block.trim() !== "";
  }
  if (block !== "") blocks.push(block);
  return blocks;
}

/** Items of one list may have blank lines between them, and paragraphs of their own. */
function goesOnWithList(line: string): boolean {
  return LIST_ITEM.test(line) || /^\s/.test(line);
}

/** The lines with their ends. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
