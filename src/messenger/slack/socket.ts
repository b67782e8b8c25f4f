import { isRecord, tryParseJson } from "../../base/json.ts";
import { backgroundClock, sleep } from "../../base/time.ts";
import { ChannelError } from "../channel.ts";
import type { SlackCall } from "./api.ts";

/** What Slack sends over a socket, for which it wants an answer. */
export interface Envelope {
  readonly type: string;
  readonly payload: Record<string, unknown>;
}

/** What socket mode asks of whoever listens. */
interface SocketDeps {
  /** With the app's own token. */
  readonly call: SlackCall;
  /** Takes what came. Once it resolves, Slack is told, with what it resolves with; where it rejects, Slack brings it again. */
  readonly take: (envelope: Envelope) => Promise<object | undefined>;
  /** Whether Slack may send us there. */
  readonly isOurs: (url: URL) => boolean;
  /** How long a connection is used. */
  readonly renewMs: number;
}

/** How long a connection may take to come up. */
const HELLO_MS = 30_000;

/**
 * Reads what comes over sockets until `signal`. A connection is replaced before it goes: when Slack says so, and after a while
 * anyway, since a silently dead one looks alive. What was not acknowledged on one comes on the next.
 */
export async function readSockets(deps: SocketDeps, signal: AbortSignal): Promise<void> {
  let link = await open(deps, signal);
  try {
    while (!signal.aborted) {
      const over = new AbortController();
      const time = sleep(backgroundClock, deps.renewMs, AbortSignal.any([signal, over.signal])).catch(() => undefined);
      await Promise.race([link.done, time]).finally(() => over.abort());
      if (signal.aborted) break;
      const before = link;
      // First the new one, so that nothing falls between the two.
      link = await open(deps, signal).catch(async (thrown: unknown) => {
        await before.close();
        throw thrown;
      });
      await before.close();
    }
  } finally {
    await link.close();
  }
}

interface Link {
  /** Slack wants us to come anew. Rejects when something failed. */
  readonly done: Promise<void>;
  /** When all that came over it is dealt with. */
  close(): Promise<void>;
}

async function open({ call, take, isOurs }: SocketDeps, signal: AbortSignal): Promise<Link> {
  const { url } = await call("apps.connections.open", {}, signal);
  if (typeof url !== "string" || !URL.canParse(url) || !isOurs(new URL(url)))
    throw new ChannelError("refused", "Slack (apps.connections.open): it sends us to an address that is not its own.");
  const socket = new WebSocket(url);
  const hello = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  /** Whoever is slow to be taken holds up nobody else. */
  const underWay = new Set<Promise<void>>();
  const fail = (error: unknown) => {
    hello.reject(error);
    done.reject(error);
  };
  // Whoever waits is told; if nobody does, it is no news.
  hello.promise.catch(() => undefined);
  done.promise.catch(() => undefined);
  const handle = async (frame: Record<string, unknown>): Promise<void> => {
    const { envelope_id: id, type, payload } = frame;
    if (typeof id !== "string" || typeof type !== "string" || !isRecord(payload)) return;
    const answer = await take({ type, payload });
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ envelope_id: id, ...(answer !== undefined && { payload: answer }) }));
  };
  socket.addEventListener("message", ({ data }) => {
    const frame = tryParseJson(String(data));
    if (!isRecord(frame)) return;
    if (frame.type === "hello") hello.resolve();
    else if (frame.type === "ping") socket.send(JSON.stringify({ type: "pong" }));
    else if (frame.type === "disconnect") {
      const refusal = refusalOf(frame.reason);
      if (refusal === undefined) done.resolve();
      else fail(refusal);
    } else {
      const taking = handle(frame)
        .catch(() => undefined)
        .finally(() => underWay.delete(taking));
      underWay.add(taking);
    }
  });
  socket.addEventListener("error", () => fail(broken("it failed")));
  socket.addEventListener("close", ({ code }) => fail(broken(`it was closed, ${code}`)));
  const close = async (): Promise<void> => {
    await Promise.all(underWay);
    socket.close();
  };
  const over = new AbortController();
  const late = sleep(backgroundClock, HELLO_MS, AbortSignal.any([signal, over.signal])).then(() => {
    throw broken("nothing came over it");
  });
  try {
    await Promise.race([hello.promise, late]);
  } catch (thrown) {
    await close();
    throw thrown;
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
  return { done: done.promise, close };
}

function broken(why: string): ChannelError {
  return new ChannelError("unknown", `The connection to Slack broke: ${why}.`);
}

/** Most reasons mean no more than that there is another connection to be had. */
function refusalOf(reason: unknown): ChannelError | undefined {
  if (reason === "link_disabled")
    return new ChannelError("auth", "Slack closed the connection: socket mode is switched off for this app.");
  if (reason === "too_many_websockets")
    return new ChannelError("conflict", "Slack closed the connection: too many processes are connected for this app.");
  return undefined;
}
