import { htmlToMarkdown } from "./html-to-markdown.ts";

/** A body that a model can read. */
export interface ReadableContent {
  readonly title?: string;
  readonly text: string;
  /** For a file name: `md`, `json`, `txt`. */
  readonly extension: string;
}

const textual =
  /^(?:text\/|application\/(?:json|ld\+json|xml|javascript|ecmascript|x-ndjson|yaml|x-yaml|toml|graphql|x-sh|sql|rtf)\b|[^;]+\+(?:json|xml|yaml)\b)/;
/** How far into a page its encoding is looked for, as browsers do. */
const SNIFF_BYTES = 1_024;

/**
 * Makes text of a body, in pieces between which others have their turn. HTML becomes Markdown unless `raw`; other texts stay as they are.
 * @returns `undefined` for what is no text
 */
export async function readContent(
  body: Uint8Array,
  contentType: string,
  options: { readonly raw: boolean; readonly url: string },
): Promise<ReadableContent | undefined> {
  const type = contentType.toLowerCase().trim();
  const isHtml = /^(?:text\/html|application\/xhtml\+xml)/.test(type);
  const unknown = type === "" || type.startsWith("application/octet-stream");
  if (unknown ? body.subarray(0, SNIFF_BYTES).includes(0) : !isHtml && !textual.test(type)) return undefined;
  const text = decode(body, type, isHtml);
  if (isHtml && !options.raw) {
    const { title, markdown } = await htmlToMarkdown(text, options.url);
    return { ...(title !== undefined && { title }), text: markdown, extension: "md" };
  }
  const extension = isHtml ? "html" : type.includes("json") ? "json" : type.includes("markdown") ? "md" : "txt";
  return { text, extension };
}

function decode(body: Uint8Array, type: string, isHtml: boolean): string {
  const named = /charset\s*=\s*"?([\w:.-]{1,40})/.exec(type)?.[1] ?? (isHtml ? sniff(body) : undefined);
  try {
    return new TextDecoder(named ?? "utf-8").decode(body);
  } catch {
    // A name that nobody knows.
    return new TextDecoder().decode(body);
  }
}

function sniff(body: Uint8Array): string | undefined {
  const start = new TextDecoder("latin1").decode(body.subarray(0, SNIFF_BYTES));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(start)?.[1];
}
