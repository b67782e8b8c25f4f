import { type AgentEnv, callable, Think } from "perdure";
import { defineMessengers, type Messengers } from "perdure/messengers";
import { telegramMessenger } from "perdure/messengers/telegram";
import type { AgentStep } from "perdure/host";
import { MAX_CONVERSATIONS, MAX_TITLE } from "./contract.ts";
import type { ConversationItem, ConversationsApi, ConversationsState } from "./contract.ts";

/** The class of the children, by the name that it is registered under: it imports this file, so not the reverse. */
const CHILD = "Assistant";
/** What `create` makes, and what fits into an address as it is. */
const ID = /^[\w-]{1,64}$/;

/**
 * The list of conversations. Each is a child agent; one is listed once something was said in it. With `TELEGRAM_BOT_TOKEN` people talk
 * at Telegram too, each chat in a conversation of its own. The list itself talks with nobody.
 */
export class Conversations extends Think<AgentEnv, ConversationsState> implements ConversationsApi {
  /** A link to a conversation opens it, also one in which nothing was said yet. */
  static override readonly subAgents = [CHILD];
  static {
    callable(this, "create");
    callable(this, "rename");
    callable(this, "remove");
  }
  override initialState: ConversationsState = { items: [] };

  override async getMessengers(): Promise<Messengers> {
    const { TELEGRAM_BOT_TOKEN: token, TELEGRAM_ALLOW: allowed, TELEGRAM_API_URL: apiUrl } = process.env;
    if (token === undefined || token === "") return {};
    const { Assistant: agentClass } = await import("./assistant.ts");
    const allow = allowed === undefined ? {} : { allow: allowed.split(",").map((id) => id.trim()) };
    const telegram = telegramMessenger({
      ...{ token, ...allow, ...(apiUrl !== undefined && { apiUrl }) },
      conversation: ({ thread }) => ({ target: "subagent", name: thread.replaceAll(/[^\w-]/g, "-"), agentClass }),
      attachments: { allow: ["image/*", "text/*", "application/pdf"] },
    });
    return defineMessengers({ telegram });
  }

  override authorize(_identity: unknown, act: string): boolean {
    return !act.startsWith("chat.");
  }

  async create(): Promise<string> {
    this.#makeSureOfRoom();
    return crypto.randomUUID();
  }

  async rename(id: string, title: string): Promise<void> {
    const name = typeof title === "string" ? cutTitle(title) : "";
    if (name === "") throw new Error("A title needs some text.");
    const item = this.#find(checkId(id));
    if (item === undefined) throw new Error("There is no such conversation in the list.");
    this.#replace({ ...item, title: name, named: true });
  }

  async remove(id: string): Promise<void> {
    checkId(id);
    // The line goes last: after a crash in between it is still there, to remove again.
    await this.deleteSubAgent(CHILD, id);
    this.setState({ items: this.state.items.filter((item) => item.id !== id) });
  }

  /**
   * A conversation tells that its user said something, with the title that its first message makes.
   * @throws Error when it is new and the list is full.
   */
  heard(id: string, title: string, from?: string): void {
    // Deleted in the meantime: its last words must not bring it back.
    if (!this.hasSubAgent(CHILD, id)) return;
    const item = this.#find(id);
    if (item === undefined) this.#makeSureOfRoom();
    const named = item?.named === true;
    const told = from ?? item?.from;
    const shown = { id, title: named ? item.title : cutTitle(title), updatedAt: Date.now(), named };
    this.#toFront({ ...shown, ...(told !== undefined && { from: told }) });
  }

  /** A conversation tells that something happened in it. */
  touched(id: string): void {
    const item = this.#find(id);
    if (item !== undefined) this.#toFront({ ...item, updatedAt: Date.now() });
  }

  /** A link to any conversation may be opened, but not to anything else. */
  override onBeforeSubAgent(_request: Request, child: AgentStep): Response | undefined {
    return ID.test(child.name) ? undefined : new Response("No such conversation.", { status: 404 });
  }

  #find(id: string): ConversationItem | undefined {
    return this.state.items.find((item) => item.id === id);
  }

  #replace(changed: ConversationItem): void {
    this.setState({ items: this.state.items.map((item) => (item.id === changed.id ? changed : item)) });
  }

  #toFront(first: ConversationItem): void {
    this.setState({ items: [first, ...this.state.items.filter((item) => item.id !== first.id)] });
  }

  #makeSureOfRoom(): void {
    if (this.state.items.length < MAX_CONVERSATIONS) return;
    throw new Error(`There are ${MAX_CONVERSATIONS} conversations, and that is the most. Remove one first.`);
  }
}

/** One line of at most {@link MAX_TITLE} characters, an emoji counted as one. */
export function cutTitle(text: string): string {
  const characters = Array.from(
    new Intl.Segmenter().segment(text.trim().replaceAll(/\s+/g, " ")),
    (one) => one.segment,
  );
  if (characters.length <= MAX_TITLE) return characters.join("");
  const kept = characters.slice(0, MAX_TITLE - 1).join("");
  return `${kept.trimEnd()}…`;
}

function checkId(id: unknown): string {
  if (typeof id === "string" && ID.test(id)) return id;
  throw new Error("That is not the id of a conversation.");
}
