import type { UIMessage } from "../message/types.ts";
import type { OlderFrame } from "../wire/frames.ts";
import { type ChatConnection, sendFrame } from "./chat-frames.ts";

/*
 * A chat's list is the end of the conversation, told again and again, and as much before it as was asked for; the agent's cursor
 * says what stands before the list.
 */

/** What is known of the part of a conversation that is not shown. */
export class History {
  readonly #connection: ChatConnection;
  /** Asks for what stands before the list; undefined when there is nothing. */
  #before: number | undefined;
  #asked: PromiseWithResolvers<void> | undefined;
  #aside: { readonly list: readonly UIMessage[]; readonly before: number | undefined } | undefined;

  constructor(connection: ChatConnection) {
    this.#connection = connection;
  }

  get hasOlder(): boolean {
    return this.#before !== undefined;
  }

  get isLoading(): boolean {
    return this.#asked !== undefined;
  }

  /**
   * The known conversation after the agent told its end. What is shown before that end stays, if the two meet. If not, only the
   * end is shown: too much was said, or the agent has not heard yet that the list was cut here. So what was shown is kept aside
   * until it meets the next.
   */
  told(shown: readonly UIMessage[], end: readonly UIMessage[], before: number | undefined): readonly UIMessage[] {
    const [first] = end;
    const meets = (list: readonly UIMessage[]) => list.findIndex(({ id }) => id === first?.id);
    if (before === undefined || first === undefined) {
      this.#moveTo(undefined);
      return end;
    }
    const aside = this.#aside;
    this.#aside = undefined;
    let list = shown;
    let at = meets(list);
    if (at === -1 && aside !== undefined && meets(aside.list) !== -1) {
      list = aside.list;
      at = meets(list);
      this.#moveTo(aside.before);
    } else if (at === -1 && shown.length > 0) this.#aside = { list: shown, before: this.#before };
    // A list that was not told in pages may begin anywhere: what stands before the end is asked for again, then.
    if (at <= 0 || this.#before === undefined) this.#moveTo(before);
    return at <= 0 ? end : [...list.slice(0, at), ...end];
  }

  /** Asks for what was said before the list. Resolves when it is there, or cannot be had now. */
  load(): Promise<void> {
    if (this.#before === undefined || this.#connection.connectionError) return Promise.resolve();
    if (this.#asked === undefined) {
      this.#asked = Promise.withResolvers<void>();
      this.#ask(this.#before);
    }
    return this.#asked.promise;
  }

  /** The list with what came in front of it. */
  came(list: readonly UIMessage[], page: OlderFrame): readonly UIMessage[] {
    // The answer to a question that is not open any more.
    if (page.before !== this.#before) return list;
    const shown = new Set(list.map(({ id }) => id));
    const older = page.messages.filter(({ id }) => !shown.has(id));
    this.#before = page.next;
    if (older.length === 0 && page.next !== undefined && this.#asked !== undefined) {
      this.#ask(page.next);
      return list;
    }
    this.#settle();
    return [...older, ...list];
  }

  /** The connection is gone, and the answer with it. */
  lost(): void {
    this.#settle();
  }

  /** The conversation was emptied. */
  forget(): void {
    this.#aside = undefined;
    this.#moveTo(undefined);
  }

  #moveTo(before: number | undefined): void {
    if (before !== this.#before) this.#settle();
    this.#before = before;
  }

  #settle(): void {
    this.#asked?.resolve();
    this.#asked = undefined;
  }

  #ask(before: number): void {
    sendFrame(this.#connection, { type: "perdure_chat_older", before });
  }
}
