import { type Button, ChannelError, type Content } from "../channel.ts";
import { STOP_DATA } from "../reception.ts";
import { cutAt, partOf } from "../split.ts";
import type { Network } from "./networks.ts";

/** A section of a card is no longer than this at any network that has them. */
const SECTION = 2_000;

/** What would call everybody. Signs that look the same take the place of the first one. */
const CALLS_ALL = /@(?=everyone|here(?!\w*\.\w))|(?<!\w)@(?=channel\b)|<(?=!(?:everyone|here|channel|subteam)|@&)/gi;

/**
 * What an adapter is asked to post, or change a message to. It may silently cut what is too long, so nothing too long is passed.
 * @param mark what nobody sees, behind the text
 * @throws ChannelError `refused` for what does not fit
 */
export function postable(network: Network, content: Content, thread: string, mark = ""): object {
  const { text, plain, buttons } = content;
  if (text === "" || text.length > network.text)
    throw new ChannelError("refused", `The text is empty, or longer than ${network.text}.`);
  const said = network.callsAll === true ? text.replace(CALLS_ALL, (sign) => (sign === "@" ? "＠" : "‹")) : text;
  const changes = network.changes?.(said) === true;
  const shown = changes ? buttons?.filter(({ data }) => data !== STOP_DATA) : buttons;
  if (shown !== undefined && shown.length > 0) {
    if (changes)
      throw new ChannelError("refused", "The question is too long to be asked there, or would say something else.");
    return { card: card(network, said, shown, thread) };
  }
  // It had buttons, which go with them.
  if (shown !== undefined && network.cardsStay !== undefined) return { card: card(network, said, [], thread) };
  return plain === true || network.takesMarkdown || changes ? { raw: said + mark } : { markdown: said + mark };
}

function card(network: Network, text: string, buttons: readonly Button[], thread: string): object {
  const actions: object[] = buttons.map(({ label, data }) => {
    if (new TextEncoder().encode(data).byteLength > network.buttonData)
      throw new ChannelError("refused", `A button holds more than ${network.buttonData} bytes.`);
    return { type: "button", id: data, label, ...(network.buttonsNameThread === true && { value: thread }) };
  });
  if (actions.length === 0 && network.cardsStay === "disabled")
    actions.push({ type: "button", id: "none", label: "✓", disabled: true });
  const children: object[] = [];
  for (let from = 0; from < text.length;) {
    const end = cutAt(text, from, SECTION) ?? text.length;
    children.push({ type: "text", content: partOf(text, from, end) });
    from = end;
  }
  if (actions.length > 0) children.push({ type: "actions", children: actions });
  return { type: "card", children };
}
