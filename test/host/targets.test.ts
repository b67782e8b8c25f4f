// What a request line names is read in one way, whether the request asks for an answer or for a socket.
import { Agent } from "perdure";
import { createHost, type HostOptions, memoryStorage } from "perdure/node";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { agentId } from "../../src/wire/agent-path.ts";
import { seeded } from "../support/seeded.ts";
import { openHost } from "./open-host.ts";
import { askRaw } from "./raw-request.ts";

class Echo extends Agent {
  static override readonly subAgents = ["Echo"];
}

/** Asks both ways and says for each what the host took it for: the agent's id, or the status. */
async function readings(port: number, heard: string[], target: string, headers?: readonly string[]) {
  const seen: string[] = [];
  for (const upgrade of [false, true]) {
    heard.length = 0;
    const { status } = await askRaw(port, target, { upgrade, ...(headers && { headers }) });
    seen.push(heard[0] ?? String(status));
  }
  return seen;
}

function listening(heard: string[]): Pick<HostOptions, "onBeforeRequest" | "onBeforeConnect"> {
  const note: HostOptions["onBeforeConnect"] = (_request, { path }) => {
    heard.push(agentId(path));
    return new Response("no", { status: 403 });
  };
  return { onBeforeRequest: note, onBeforeConnect: note };
}

async function open() {
  const heard: string[] = [];
  const host = await openHost({ agents: { Echo }, storage: memoryStorage(), ...listening(heard) });
  return {
    port: host.port,
    read: (target: string, headers?: readonly string[]) => readings(host.port, heard, target, headers),
  };
}

const both = (reading: string) => [reading, reading];

test("another name in front of an address is not taken for a server's: neither way in reaches the agent", async () => {
  const { read } = await open();
  expect(await read("/agents/echo/a")).toEqual(both("Echo/a"));
  expect(await read("//x/agents/echo/a")).toEqual(both("404"));
  expect(await read("///x/agents/echo/a")).toEqual(both("404"));
  expect(await read("//127.0.0.1/agents/echo/a")).toEqual(both("404"));
  expect(await read("//agents///echo//a")).toEqual(both("Echo/a"));
});

test.each([
  ["/./agents/echo/a", "Echo/a"],
  ["/x/../agents/echo/a", "Echo/a"],
  ["/agents/echo/a/%2e%2e/b", "Echo/b"],
  ["/agents/echo/%2E%2e", "404"],
  ["/agents%2fecho%2fa", "404"],
  ["/agents/echo%2fa", "404"],
  ["/agents/echo/a%2Fb", "Echo/a%2Fb"],
  ["/AGENTS/echo/a", "404"],
  ["/agents/ECHO/a", "400"],
  ["/%61gents/echo/a", "Echo/a"],
  ["/agents/%65cho/a", "Echo/a"],
  ["/agents/echo/a%00", "400"],
  ["/agents/echo/a/SUB/echo/b", "Echo/a"],
  ["/agents/echo/a/%73ub/echo/b", "Echo/a"],
  ["\\agents\\echo\\a", "400"],
  ["/agents\\echo\\a", "400"],
  ["/\\x/agents/echo/a", "400"],
  ["agents/echo/a", "400"],
  ["*", "400"],
  ["?/agents/echo/a", "400"],
  ["ftp://x/agents/echo/a", "400"],
  ["ws://x/agents/echo/a", "400"],
  ["http://", "400"],
  [`/agents/echo/a${"/sub/echo/a".repeat(15)}`, `Echo/a${"/Echo/a".repeat(15)}`],
  [`/agents/echo/a${"/sub/echo/a".repeat(16)}`, "400"],
  [`/agents/echo/${"n".repeat(513)}`, "400"],
  ["/agents/echo/a#/../b", "Echo/a"],
  ["/agents/echo/a?x=/../b\\c", "Echo/a"],
])("both ways in read %s alike", async (target, reading) => {
  const { read } = await open();
  expect(await read(target)).toEqual(both(reading));
});

test("a whole address as a target counts when it names the host that the request is for, and no other", async () => {
  const { port, read } = await open();
  expect(await read(`http://127.0.0.1:${port}/agents/echo/a`)).toEqual(both("Echo/a"));
  expect(await read("http://evil.example/agents/echo/a")).toEqual(both("400"));
  expect(await read(`https://evil.example@127.0.0.1:${port}/agents/echo/a`)).toEqual(both("400"));
});

test("a request with two Host headers, with none, or with one that is no name is refused by both", async () => {
  const { port, read } = await open();
  const own = `Host: 127.0.0.1:${port}`;
  expect(await read("/agents/echo/a", [own, "Host: other"])).toEqual(both("400"));
  expect(await read("/agents/echo/a", [own, own])).toEqual(both("400"));
  expect(await read("/agents/echo/a", [])).toEqual(both("400"));
  for (const odd of [
    "",
    "a b",
    "user@127.0.0.1",
    "127.0.0.1/agents/echo/b?",
    "127.0.0.1#",
    "[::1",
    "127.0.0.1:99999",
  ]) {
    expect(await read("/agents/echo/a", [`Host: ${odd}`]), odd).toEqual(both("400"));
  }
});

test("targets made of odd pieces are read alike by both", async () => {
  const { read } = await open();
  const random = seeded(19);
  const pieces = [
    "/",
    "//",
    "/.",
    "/..",
    "agents",
    "echo",
    "/agents/echo/a",
    "/sub/echo/b",
    "%2e",
    "%2F",
    "%5c",
    "\\",
    "x",
    "@",
  ];
  pieces.push(":", "?", "#", "%", "%zz", "%00", "..", ";", "127.0.0.1", "http:", "ü", "&", "*", "'", "[", "]");
  for (let round = 0; round < 400; round++) {
    const count = 1 + random(6);
    const target = Array.from({ length: count }, () => pieces[random(pieces.length)] ?? "").join("") || "/";
    const [request, socket] = await read(target);
    expect(socket, target).toBe(request);
  }
});

test("an app's own server that mounts the host gets the same reading of both", async () => {
  const heard: string[] = [];
  const host = createHost({ agents: { Echo }, storage: memoryStorage(), ...listening(heard) });
  const server = createServer((request, response) =>
    host.handler(request, response, () => response.writeHead(404).end()),
  );
  server.on("upgrade", (request, socket, head) => {
    void host.upgrade(request, socket, head).then((ours) => {
      if (!ours) socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    await host.stop();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const read = (target: string) => readings(port, heard, target);
  expect(await read("/agents/echo/a")).toEqual(both("Echo/a"));
  expect(await read("//x/agents/echo/a")).toEqual(both("404"));
  expect(await read("/agents\\echo\\a")).toEqual(both("400"));
  expect(await read("http://evil.example/agents/echo/a")).toEqual(both("400"));
  expect(await read("agents/echo/a")).toEqual(both("400"));
});

test.each(["HEAD", "OPTIONS", "POST", "DELETE", "PATCH", "QUERY"])(
  "%s asks the hooks like any other",
  async (method) => {
    const heard: string[] = [];
    const host = await openHost({ agents: { Echo }, storage: memoryStorage(), ...listening(heard) });
    expect((await askRaw(host.port, "/agents/echo/a/sub/echo/b", { method })).status).toBe(403);
    expect(heard).toEqual(["Echo/a/Echo/b"]);
  },
);

test("TRACE is nobody's, and wakes nobody", async () => {
  const host = await openHost({ agents: { Echo }, storage: memoryStorage() });
  expect((await askRaw(host.port, "/agents/echo/a", { method: "TRACE" })).status).toBe(405);
  expect(host.status()).toMatchObject({ live: 0, kept: 0 });
});
