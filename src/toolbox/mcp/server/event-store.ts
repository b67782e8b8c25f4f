import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

/** What one session may have told without being heard. */
const MAX_EVENTS = 500;
const MAX_CHARS = 2_000_000;

interface StoredEvent {
  readonly id: string;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly size: number;
}

/** A session's last messages, for clients whose stream broke. In memory and small: the oldest go first; gone ones are skipped. */
export class RecentEvents implements EventStore {
  readonly #events: StoredEvent[] = [];
  #next = 1;
  #size = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = `${streamId}.${this.#next++}`;
    const size = JSON.stringify(message).length;
    this.#events.push({ id, streamId, message, size });
    this.#size += size;
    while (this.#events.length > MAX_EVENTS || (this.#size > MAX_CHARS && this.#events.length > 1)) {
      this.#size -= this.#events.shift()?.size ?? 0;
    }
    return id;
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#events.find(({ id }) => id === eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.#events.findIndex(({ id }) => id === lastEventId);
    const streamId = this.#events[at]?.streamId ?? "";
    // What is sent meanwhile goes the usual way.
    for (const event of this.#events.slice(at + 1)) {
      if (at >= 0 && event.streamId === streamId && "jsonrpc" in event.message) await send(event.id, event.message);
    }
    return streamId;
  }
}
