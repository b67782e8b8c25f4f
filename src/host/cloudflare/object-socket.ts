import { newId } from "../../base/id.ts";
import { HostSocket, newSocketMemory, type RawSocket, type SocketClient, type SocketMemory } from "../host-socket.ts";
import type { ObjectStorage, PlatformSocket } from "./platform.ts";

const OPEN = 1;
/** Where what is too large for the platform's own attachment stands. */
const SPILLED = "perdure:socket:";
/** The platform keeps 16 KiB with a socket; some are its own. */
const MAX_ATTACHED = 15_000;
/** Bytes that may come before a client is let in. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** All that must outlive the object's stay in memory. */
interface Kept {
  readonly key: string;
  readonly since: number;
  readonly client: SocketClient;
  readonly memory: SocketMemory;
}

let last = 0;

/** A socket that has just come. */
export function newSocket(storage: ObjectStorage, ws: PlatformSocket, client: SocketClient): HostSocket {
  // Dense enough to tell which of two came first.
  last = Math.max(last + 1, Date.now());
  return socketOf(storage, ws, { key: newId(), since: last, client, memory: newSocketMemory() });
}

/** The sockets that the platform kept while the object was not in memory, oldest first. */
export function keptSockets(
  storage: ObjectStorage,
  all: readonly PlatformSocket[],
): (readonly [PlatformSocket, HostSocket])[] {
  const kept = all.flatMap((ws) => {
    const found = ws.deserializeAttachment() as { readonly spilled: string } | Kept | null;
    const whole = found !== null && "spilled" in found ? storage.kv.get(SPILLED + found.spilled) : found;
    return whole === null || whole === undefined ? [] : [[ws, whole as Kept] as const];
  });
  for (const [, { since }] of kept) last = Math.max(last, since);
  return kept.sort(([, a], [, b]) => a.since - b.since).map(([ws, one]) => [ws, socketOf(storage, ws, one)] as const);
}

/** Forgets what was kept of sockets that are gone. */
export function forgetSpilled(storage: ObjectStorage, ws: PlatformSocket): void {
  const found = ws.deserializeAttachment() as { readonly spilled?: string } | null;
  if (found?.spilled !== undefined) storage.kv.delete(SPILLED + found.spilled);
}

function socketOf(storage: ObjectStorage, ws: PlatformSocket, kept: Kept): HostSocket {
  let isSpilled = false;
  const save = () => {
    const isLarge = JSON.stringify(kept).length > MAX_ATTACHED;
    if (isLarge) storage.kv.put(SPILLED + kept.key, kept);
    else if (isSpilled) storage.kv.delete(SPILLED + kept.key);
    if (!isLarge || !isSpilled) ws.serializeAttachment(isLarge ? { spilled: kept.key } : kept);
    isSpilled = isLarge;
  };
  save();
  return new HostSocket(kept.client, rawSocket(ws), MAX_HELD_BYTES, { memory: kept.memory, save });
}

/** Slow readers are the platform's business: nothing is known here of what waits. */
function rawSocket(ws: PlatformSocket): RawSocket {
  return {
    buffered: 0,
    send(data) {
      if (ws.readyState === OPEN) ws.send(data);
    },
    sendAll(frames) {
      if (ws.readyState === OPEN) for (const frame of frames) ws.send(frame);
    },
    close: (code, reason) => ws.close(code, reason),
    terminate: () => ws.close(),
  };
}
