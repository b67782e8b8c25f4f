import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { memoryStorage, serve } from "perdure/node";
import { WebSocketServer } from "ws";
import { Bench } from "./agent.ts";
import { startClient } from "./client-process.ts";
import { inTurns } from "./measure.ts";
import type { Figure } from "./section.ts";

const ROUNDS = 5;
const COUNT = 10_000;

/** Calls of a method over a socket beside the same frames through a server that only sends them back. */
export async function measureRpc(): Promise<Figure[]> {
  const host = await serve({ agents: { Bench }, storage: memoryStorage(), port: 0, signals: false });
  const echo = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await once(echo, "listening");
  echo.on("connection", (socket) => socket.on("message", (data) => socket.send(data, { binary: false })));
  const bareUrl = `ws://127.0.0.1:${(echo.address() as AddressInfo).port}`;
  const oursUrl = `${host.url.replace("http", "ws")}/agents/bench/rpc`;
  const client = startClient();
  const figures: Figure[] = [];
  for (const atOnce of [1, 64]) {
    const trips = (url: string, rpc: boolean) => client.run({ type: "round-trips", url, count: COUNT, atOnce, rpc });
    await trips(oursUrl, true);
    const rates = await inTurns(
      ROUNDS,
      () => trips(oursUrl, true),
      () => trips(bareUrl, false),
    );
    figures.push({ what: `calls over one socket, ${atOnce} at a time`, unit: "calls/s", ...rates, against: "ws echo" });
  }
  client.close();
  echo.close();
  await host.stop();
  return figures;
}
