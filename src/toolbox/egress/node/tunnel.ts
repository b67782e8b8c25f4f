import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { PerdureError } from "../../../base/error.ts";
import { createDeadline } from "../deadline.ts";
import type { Engine } from "../egress.ts";
import { hostAndPort, parseTarget, type Target } from "../target.ts";
import { reasonOf } from "./exchange.ts";
import { admit, holdTo, type Pinned, refusal } from "./pin.ts";
import { answerPlainly, refusalOf } from "./proxy-answer.ts";

type Endpoint = Pick<Target, "host" | "port">;

/** Answers a CONNECT. Unseen content: host and port are decided, the address pinned, bytes and time counted. Never throws. */
export async function openTunnel(
  engine: Engine,
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
): Promise<void> {
  const { limits } = engine;
  const left = new AbortController();
  client.once("close", () => left.abort(new PerdureError("disconnected", "The client of the proxy left.")));
  const deadline = createDeadline(limits.totalMs, left.signal);
  let leave = () => {};
  try {
    leave = await engine.enter(deadline.signal);
    const authority = request.url ?? "";
    const endpoint = readAuthority(authority);
    if (endpoint === undefined) {
      const reason = "CONNECT needs a host and a port, such as example.com:443.";
      throw refusal(engine, about(authority.slice(0, 300)), reason);
    }
    const { host, port } = endpoint;
    const shown = about(hostAndPort(host, port));
    const pinned = await admit(engine, engine.policy.tunnel(host, port), endpoint, shown, deadline.signal);
    const server = await dial(endpoint, pinned, deadline.signal);
    if (client.destroyed) {
      server.destroy();
      leave();
      return;
    }
    client.once("close", leave);
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.byteLength > 0) server.write(head);
    join(client, server, engine);
  } catch (thrown) {
    leave();
    const { status, text } = refusalOf(thrown);
    answerPlainly(client, status, text);
  } finally {
    deadline.clear();
  }
}

function about(url: string) {
  return { via: "tunnel", method: "CONNECT", url, hop: 0 } as const;
}

function readAuthority(authority: string): Endpoint | undefined {
  const [, portText] = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#\\[\]]+):(\d{1,5})$/i.exec(authority) ?? [];
  if (portText === undefined) return undefined;
  const target = parseTarget(`https://${authority}/`);
  return "fault" in target ? undefined : { host: target.host, port: target.port };
}

function dial({ host, port }: Endpoint, pinned: Pinned, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const server = connect({ host, port, lookup: pinned.lookup, autoSelectFamily: true, allowHalfOpen: true, signal });
    holdTo(server, pinned);
    const fail = (error: Error) => reject(reasonOf(error, { host, port }, signal));
    server.once("error", fail);
    server.once("connect", () => {
      server.off("error", fail);
      resolve(server);
    });
  });
}

/** Passes bytes both ways until one side ends, or a limit is reached: then both are cut, there is nobody to tell. */
function join(client: Socket, server: Socket, { limits }: Engine): void {
  const cut = () => {
    client.destroy();
    server.destroy();
  };
  const timer = setTimeout(cut, limits.tunnelMs);
  let size = 0;
  const count = (chunk: Buffer) => {
    size += chunk.byteLength;
    if (size > limits.tunnelBytes) cut();
  };
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on("data", count);
    from.on("error", cut);
    from.once("close", () => {
      clearTimeout(timer);
      // What was written before has to arrive.
      to.end();
    });
    from.setTimeout(limits.tunnelIdleMs, cut);
    from.pipe(to);
  }
}
