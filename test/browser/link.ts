import { connect, createServer, type Server, type Socket } from "node:net";

/** A wire between browser and host that can be cut. What a browser calls offline leaves open WebSockets alone. */
export interface Link {
  /** Where browsers connect instead of to the host. The same before and after a cut. */
  readonly port: number;
  readonly url: string;
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>;
  /** Takes connections again after `cut`. */
  mend(): Promise<void>;
  /** Nothing passes any more, in either direction, but nobody is told: what a dead radio looks like. */
  hold(): void;
  /** All that was held back passes, in order. */
  release(): void;
  close(): Promise<void>;
}

/** Opens a link to a port of this machine. `target` is asked at each connection. */
export async function openLink(target: () => number): Promise<Link> {
  const sockets = new Set<Socket>();
  let held = false;
  const flow = (socket: Socket) => (held ? socket.pause() : socket.resume());
  const server = createServer((near) => {
    const far = connect(target(), "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (data) => void to.write(data));
      from.on("end", () => to.end());
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      flow(from);
    }
  });
  const port = await listen(server, 0);
  const cut = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    cut,
    mend: async () => void (await listen(server, port)),
    hold() {
      held = true;
      sockets.forEach(flow);
    },
    release() {
      held = false;
      sockets.forEach(flow);
    },
    close: async () => (server.listening ? cut() : undefined),
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
