// The other side of the sockets, in a process of its own so that it is not measured with the host.
import { WebSocket } from "ws";

/** What the parent may ask for. */
export type ClientCommand =
  | {
      readonly type: "round-trips";
      readonly url: string;
      readonly count: number;
      readonly atOnce: number;
      readonly rpc: boolean;
    }
  | { readonly type: "connect"; readonly urls: readonly string[] }
  | { readonly type: "disconnect" };

const CONNECT_AT_ONCE = 50;
let idle: WebSocket[] = [];

process.on("message", (command: ClientCommand) => {
  run(command).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});

async function run(command: ClientCommand): Promise<number> {
  if (command.type === "round-trips") return roundTrips(command);
  if (command.type === "disconnect") {
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once("close", resolve).close())));
    idle = [];
    return 0;
  }
  for (let i = 0; i < command.urls.length; i += CONNECT_AT_ONCE) {
    idle.push(...(await Promise.all(command.urls.slice(i, i + CONNECT_AT_ONCE).map(open))));
  }
  return idle.length;
}

function open(url: string): Promise<WebSocket> {
  return whenOpen(new WebSocket(url, { perMessageDeflate: false }));
}

function whenOpen(socket: WebSocket): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Round trips per second of one socket with so many under way. */
async function roundTrips({
  url,
  count,
  atOnce,
  rpc,
}: Extract<ClientCommand, { type: "round-trips" }>): Promise<number> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  // Listening before it is open: the greeting may come in the same packet.
  await Promise.all([whenOpen(socket), rpc ? until(socket, '"cf_agent_mcp_servers"') : undefined]);
  const begun = performance.now();
  await new Promise<void>((resolve) => {
    let [sent, answered] = [0, 0];
    const send = () => {
      if (sent >= count) return;
      sent++;
      socket.send(JSON.stringify({ type: "rpc", id: String(sent), method: "ping", args: [sent] }));
    };
    socket.on("message", () => {
      if (++answered >= count) resolve();
      else send();
    });
    for (let i = 0; i < atOnce; i++) send();
  });
  const took = performance.now() - begun;
  socket.close();
  return (count * 1000) / took;
}

function until(socket: WebSocket, text: string): Promise<void> {
  return new Promise((resolve) => {
    socket.on("message", function look(data) {
      if (!String(data as Buffer).includes(text)) return;
      socket.off("message", look);
      resolve();
    });
  });
}
