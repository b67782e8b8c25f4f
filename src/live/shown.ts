import type { UIMessage } from "../message/types.ts";
import type { Socket } from "../port.ts";
import type { Transcript } from "../session/transcript.ts";

/** More new messages than these are told with the whole conversation. */
const MAX_NEW = 4;

/** How far a client is with a conversation: it shows all of it up to a message. */
interface Place {
  readonly transcript: Transcript;
  readonly shape: number;
  readonly leaf: number | null;
}

/**
 * What each client of the public wire shows, as far as it follows from what it was sent. Who shows all but the last message need
 * only be told that one, however long the conversation is. What is not known for certain is not kept: the client is told all.
 */
export class Shown {
  readonly #places = new WeakMap<Socket, Place>();

  /** A client was sent all of a conversation, or has the last message now, too. */
  all(socket: Socket, transcript: Transcript): void {
    const { shape, leaf } = transcript;
    this.#places.set(socket, { transcript, shape, leaf });
  }

  /** What it shows is not known any more. */
  forget(socket: Socket): void {
    this.#places.delete(socket);
  }

  /** Whether it shows the conversation without its last message. */
  lacksLast(socket: Socket, transcript: Transcript): boolean {
    return this.lacks(socket, transcript)?.length === 1;
  }

  /** The few messages at the end that it does not show yet, oldest first. Undefined: they are many, or it is not known. */
  lacks(socket: Socket, transcript: Transcript): UIMessage[] | undefined {
    const place = this.#places.get(socket);
    if (place?.transcript !== transcript || place.shape !== transcript.shape) return undefined;
    const messages: UIMessage[] = [];
    let at = transcript.leaf;
    for (const { seq, parent, message } of transcript.up()) {
      // A damaged message is passed over on the way up: then it is not known.
      if (at === place.leaf || seq !== at || messages.length === MAX_NEW) break;
      messages.push(message);
      at = parent;
    }
    return at === place.leaf ? messages.reverse() : undefined;
  }
}
