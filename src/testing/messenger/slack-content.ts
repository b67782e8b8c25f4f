// What Slack takes for a message, and what people see of it.

type Json = Record<string, unknown>;

const POSTED_CHARS = 40_000;
const UPDATED_CHARS = 4_000;
const MARKDOWN_CHARS = 12_000;
const BLOCKS_CHARS = 13_000;
const MAX_BLOCKS = 50;
const SECTION_CHARS = 3_000;
const VALUE_CHARS = 2_000;
const LABEL_CHARS = 75;
const ACTION_CHARS = 255;

/** A button under a message. */
export interface SlackButton {
  readonly label: string;
  readonly actionId: string;
  readonly value: string;
}

/** What a call wants a message to be. Undefined fields were not in the call. */
export interface SlackContent {
  readonly text: string | undefined;
  readonly markdown: string | undefined;
  readonly blocks: readonly Json[] | undefined;
}

export function contentOf(params: Json): SlackContent {
  const { text, markdown_text: markdown } = params;
  return {
    text: typeof text === "string" ? text : undefined,
    markdown: typeof markdown === "string" ? markdown : undefined,
    blocks: parsed(params.blocks) as readonly Json[] | undefined,
  };
}

/** A value that may be JSON in a form. */
export function parsed(value: unknown): unknown {
  return typeof value === "string" ? (JSON.parse(value) as unknown) : value;
}

/** What Slack says against it. */
export function contentError(content: SlackContent, isUpdate: boolean): string | undefined {
  const { text, markdown, blocks = [] } = content;
  if (!text && !markdown && blocks.length === 0) return "no_text";
  if (markdown !== undefined && (text !== undefined || blocks.length > 0)) return "markdown_text_conflict";
  if ((markdown ?? "").length > MARKDOWN_CHARS) return "msg_too_long";
  if (isUpdate && (text ?? "").length > UPDATED_CHARS) return "msg_too_long";
  if (blocks.length > MAX_BLOCKS || !blocks.every(isBlock)) return "invalid_blocks";
  return blocks.map(blockText).join("").length > BLOCKS_CHARS ? "msg_blocks_too_long" : undefined;
}

/** What people see: what stands in blocks, or else the text without its marks. */
export function shownText({ text, markdown, blocks = [] }: SlackContent): string {
  const shown = blocks.filter(({ type }) => type !== "actions");
  if (shown.length > 0) return shown.map(blockText).join("\n");
  const read = (markdown ?? text ?? "").slice(0, POSTED_CHARS);
  return read.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

export function buttonsOf({ blocks = [] }: SlackContent): SlackButton[] {
  return blocks
    .filter(({ type }) => type === "actions")
    .flatMap(({ elements }) =>
      (elements as Json[]).map(({ text, action_id: actionId, value }) => ({
        ...{ label: String((text as Json).text), actionId: String(actionId), value: String(value) },
      })),
    );
}

/** Who is called by it: everybody there, or somebody. */
export function callsIn({ text = "", markdown = "", blocks = [] }: SlackContent): string[] {
  const read = [text, markdown, ...blocks.filter(isMrkdwn).map(blockText)];
  return read.flatMap((one) => one.match(/<(?:![a-z]+|@[A-Z0-9]+)[^>]*>/g) ?? []);
}

function isMrkdwn({ text }: Json): boolean {
  return (text as Json | undefined)?.type === "mrkdwn";
}

function blockText(block: Json): string {
  if (block.type === "rich_text") return (block.elements as Json[]).map(richText).join("\n");
  const { text } = (block.text as Json | undefined) ?? {};
  return typeof text === "string" ? text : typeof block.text === "string" ? block.text : "";
}

function richText(element: Json): string {
  const { type, indent = 0, elements = [] } = element as { type: string; indent?: number; elements?: Json[] };
  if (type === "rich_text_list") return elements.map((item) => `${"  ".repeat(indent)}• ${richText(item)}`).join("\n");
  return elements.map(({ text, url }) => String(text ?? url)).join("");
}

function isBlock(block: Json): boolean {
  const { type, elements } = block;
  if (type === "rich_text") return Array.isArray(elements) && elements.length > 0 && elements.every(isRich);
  if (type === "section" || type === "markdown") {
    const length = blockText(block).length;
    return length > 0 && length <= (type === "section" ? SECTION_CHARS : MARKDOWN_CHARS);
  }
  if (type !== "actions") return type === "divider" || type === "context" || type === "header";
  const list = (elements as Json[]).map(({ text, action_id: id, value }) => ({ ...(text as Json), id, value }));
  const ids = list.map(({ id }) => String(id));
  return (
    new Set(ids).size === ids.length &&
    ids.every((id) => id.length <= ACTION_CHARS) &&
    list.every(
      (one: Json) => isFilled(one.text, LABEL_CHARS) && (one.value === undefined || isFilled(one.value, VALUE_CHARS)),
    )
  );
}

function isRich(element: unknown): boolean {
  const { type, style, elements } = element as Json;
  if (!Array.isArray(elements) || elements.length === 0) return false;
  if (type === "rich_text_list")
    return (
      /^(bullet|ordered)$/.test(String(style)) &&
      elements.every((one) => (one as Json).type === "rich_text_section" && isRich(one))
    );
  return /^rich_text_(section|quote|preformatted)$/.test(String(type)) && elements.every(isPiece);
}

function isPiece(piece: unknown): boolean {
  const { type, text, url, style = {} } = piece as Json;
  const isStyled = Object.keys(style as Json).every((name) => /^(bold|italic|strike|code)$/.test(name));
  if (type === "link") return isStyled && isFilled(url, SECTION_CHARS) && text !== "";
  return isStyled && type === "text" && isFilled(text, BLOCKS_CHARS);
}

function isFilled(text: unknown, limit: number): boolean {
  return typeof text === "string" && text.length > 0 && text.length <= limit;
}
