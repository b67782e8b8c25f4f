import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import { jailed, printed, sandbox } from "./jailed.ts";

let allowed: Server;
let other: Server;
const asked: string[] = [];
const portOf = (server: Server) => (server.address() as AddressInfo).port;

beforeAll(async () => {
  const start = async (name: string) =>
    await new Promise<Server>((resolve) => {
      const server = createServer((request, response) => {
        asked.push(`${name} ${request.url}`);
        response.end(`from ${name}`);
      });
      server.listen(0, "127.0.0.1", () => resolve(server));
    });
  allowed = await start("allowed");
  other = await start("other");
});
afterAll(async () => {
  allowed.close();
  other.close();
  await sandbox.dispose();
});

const script = (good: number, bad: number) => `
import json, os, socket, urllib.error, urllib.request

def get(url, proxied=True):
    opener = urllib.request.build_opener() if proxied else urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(url, timeout=10).read().decode()
    except urllib.error.HTTPError as thrown:
        return thrown.code
    except OSError as thrown:
        return type(thrown).__name__

def tunnel(target):
    with socket.create_connection(("127.0.0.1", 3128), 10) as one:
        one.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
        return one.recv(100).decode().split(" ")[1]

print(json.dumps({
    "allowed": get("http://127.0.0.1:${good}/path"),
    "other": get("http://127.0.0.1:${bad}/"),
    "name": get("http://localhost:${bad}/"),
    "public": get("http://example.com/"),
    "metadata": get("http://169.254.169.254/latest/meta-data/"),
    "metadata, hex": get("http://0xa9fea9fe/"),
    "file": get("http://127.0.0.1:${good}@example.com/"),
    "past the proxy": get("http://127.0.0.1:${good}/", False),
    "tunnel": tunnel("127.0.0.1:${bad}"),
    "tunnel to metadata": tunnel("169.254.169.254:80"),
    "tunnel to mail": tunnel("example.com:25"),
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
}))`;

test(
  "with network only what is allowed is reached, and only through the proxy",
  jailed(async () => {
    const host = `127.0.0.1:${portOf(allowed)}`;
    const network = createEgress({ allow: [`http://${host}`], allowPrivate: [host] });
    const result = await sandbox.run({
      language: "python",
      code: script(portOf(allowed), portOf(other)),
      can: { network },
    });
    expect(printed(result, "stderr")).toBe("");
    expect(JSON.parse(printed(result))).toEqual({
      allowed: "from allowed",
      other: 403,
      name: 403,
      public: 403,
      metadata: 403,
      "metadata, hex": expect.toSatisfy((answer: unknown) => answer === 403 || answer === 400),
      file: expect.toSatisfy((answer: unknown) => answer === 403 || answer === 400),
      "past the proxy": "URLError",
      tunnel: "403",
      "tunnel to metadata": "403",
      "tunnel to mail": "403",
      interfaces: ["lo"],
    });
    expect(asked).toEqual(["allowed /path"]);
    // Every run has its own socket, and it is gone afterwards.
    const without = await sandbox.run({
      language: "bash",
      code: "env | grep -ci proxy; ls /sandbox-egress 2>&1 >/dev/null | wc -l",
    });
    expect(printed(without)).toBe("0\n1");
  }),
);

test(
  "Node's own fetch goes the same way",
  jailed(async () => {
    const host = `127.0.0.1:${portOf(allowed)}`;
    const network = createEgress({ allow: [`http://${host}`], allowPrivate: [host] });
    const code = `
    const ask = async (url) => { const answer = await fetch(url); return answer.status + " " + (await answer.text()).slice(0, 12); };
    return [await ask("http://${host}/fetch"), await ask("http://127.0.0.1:${portOf(other)}/").catch(() => "refused")];`;
    const result = await sandbox.run({ language: "js", code, can: { network } });
    expect(result).toMatchObject({
      status: "ok",
      value: ["200 from allowed", expect.stringMatching(/^(403|refused)/) as unknown],
    });
    expect(asked).not.toContainEqual(expect.stringContaining("other"));
  }),
);
