import { once } from "node:events";
import net from "node:net";

/** What a server said to a request that was written by hand. */
export interface RawAnswer {
  /** The status; of a socket that was opened only to be closed, the one that its close code stands for. 101: it is open. */
  readonly status: number;
  readonly text: string;
}

/** One request as bytes: `target` and `headers` go out as they are. With `upgrade` it asks for a WebSocket. */
export async function askRaw(
  port: number,
  target: string,
  options: { readonly upgrade?: boolean; readonly method?: string; readonly headers?: readonly string[] } = {},
): Promise<RawAnswer> {
  const { upgrade = false, method = "GET", headers = [`Host: 127.0.0.1:${port}`] } = options;
  const handshake = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const lines = [`${method} ${target} HTTP/1.1`, ...headers, ...(upgrade ? handshake : ["Connection: close"])];
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  let bytes = Buffer.alloc(0);
  const answered = new Promise<void>((resolve) => {
    socket.on("data", (data: Buffer) => {
      bytes = Buffer.concat([bytes, data]);
      if (frameOf(bytes) !== undefined) resolve();
    });
  });
  const closed = once(socket, "close");
  socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  await Promise.race([answered, closed]);
  socket.destroy();
  await closed;
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(bytes.toString("latin1"))?.[1] ?? 0);
  const frame = frameOf(bytes);
  const code = frame !== undefined && (frame[0] ?? 0) === 0x88 ? frame.readUInt16BE(2) : undefined;
  return code === undefined
    ? { status, text: bytes.toString("utf8") }
    : { status: code - 4000, text: frame?.subarray(4).toString("utf8") ?? "" };
}

/** The first frame behind the answer to a handshake. */
function frameOf(bytes: Buffer): Buffer | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0 || !bytes.toString("latin1").startsWith("HTTP/1.1 101")) return undefined;
  const frame = bytes.subarray(end + 4);
  return frame.length < 2 ? undefined : frame;
}
