import type { AgentHost } from "../port.ts";
import { readChunks } from "../store/stream.ts";
import { messageIdsOf, type TurnRow } from "../store/turn.ts";
import type { TurnEnd } from "../turn/engine/engine.ts";
import type { LoggedChunk } from "../turn/engine/stream-log.ts";
import type { Follower, Broadcast } from "./broadcast.ts";

/** Bytes waiting for a slow reader before it is let go; it comes back with its cursor. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/** The headers of the AI SDK's own streams, so that its transports read ours. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
  "x-vercel-ai-ui-message-stream": "v1",
};

/** A turn as server-sent events: numbered chunks from `from` on, a `data-turn` chunk, `[DONE]`. Leaving does not stop it. */
export function streamTurn(host: AgentHost, live: Broadcast, turn: TurnRow, from: number): Response {
  const encoder = new TextEncoder();
  let leave = () => {};
  let replaying = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string, isReplay = false) =>
          host.show(() => {
            if (!live.followers.has(follower)) return;
            // A log that is longer than what may wait is no fault of the reader.
            replaying = isReplay;
            controller.enqueue(encoder.encode(text));
            replaying = false;
            if ((controller.desiredSize ?? 0) >= 0) return;
            leave();
            controller.error(new Error("The reader was too slow. Reconnect with the last event id."));
          });
        const follower: Follower = {
          seq: turn.seq,
          chunks(which, chunks) {
            if (which.seq === turn.seq) write(chunks.map((chunk) => toEvent(chunk, from)).join(""));
          },
          ended(which, end) {
            if (which.seq !== turn.seq) return;
            write(endEvents(turn, end));
            host.show(() => {
              if (!live.followers.has(follower)) return;
              leave();
              controller.close();
            });
          },
          gone() {
            leave();
            controller.error(new Error("The agent has left memory. Reconnect with the last event id."));
          },
        };
        const left = Promise.withResolvers<void>();
        leave = () => {
          if (live.followers.delete(follower)) left.resolve();
        };
        live.followers.add(follower);
        // The next life would not know of this one, and the reader would wait forever.
        void host.keepAwake(left.promise);
        const stored = readChunks(host, turn.seq, from);
        const events = stored.map((body, i) => toEvent({ body, seq: from + i }, from));
        if (events.length > 0) write(events.join(""), true);
        if (isOver(turn)) follower.ended(turn, { status: turn.status, error: turn.error ?? undefined });
      },
      cancel: () => leave(),
    },
    { highWaterMark: MAX_WAITING_BYTES, size: (bytes) => (replaying ? 0 : (bytes?.byteLength ?? 0)) },
  );
  return new Response(body, { headers: STREAM_HEADERS });
}

function toEvent({ body, seq }: LoggedChunk, from: number): string {
  if (seq === undefined) return `data: ${body}\n\n`;
  return seq < from ? "" : `id: ${seq}\ndata: ${body}\n\n`;
}

function endEvents(turn: TurnRow, end: TurnEnd): string {
  const data = { requestId: turn.id, outcome: end.status, messageIds: messageIdsOf(turn) };
  const chunks: unknown[] = [{ type: "data-turn", transient: true, data }];
  if (end.status === "error") chunks.unshift({ type: "error", errorText: end.error ?? "" });
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}

function isOver(turn: TurnRow): turn is TurnRow & { status: TurnEnd["status"] } {
  return turn.status !== "held" && turn.status !== "accepted" && turn.status !== "running";
}
