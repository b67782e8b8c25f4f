/**
 * The words of a text, without markdown and white space: the same for what is stored and for what is shown. Numbers of
 * list items are left out: browsers draw them, but they are no text of the page.
 */
export function words(text: string): string[] {
  return text.replaceAll(/^\s*\d+[.)](\s+|$)/gm, "").match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Whether `part` is how `whole` begins, word by word; the last word may be half there. */
export function begins(whole: readonly string[], part: readonly string[]): boolean {
  const last = part.length - 1;
  return part.every((word, at) => (at === last ? whole[at]?.startsWith(word) === true : whole[at] === word));
}

/** All text parts of a message, one after the other. */
export function textOf(message: { readonly parts: readonly { readonly type: string }[] } | undefined): string {
  const parts = message?.parts ?? [];
  return parts.flatMap((part) => (part.type === "text" && "text" in part ? [String(part.text)] : [])).join("\n");
}
