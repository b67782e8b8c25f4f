import { agentFetch } from "agents/client";
import { buildAgentPath } from "perdure/host";
import { expect, test, vi } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, atEnd, connected, rawSocket, startHost } from "./harness.ts";

class Room extends Base {
  static override readonly subAgents = ["Room"];
  override onRequest(): Response {
    return Response.json(this.selfPath.map(({ name }) => name));
  }
  names(): string[] {
    return this.selfPath.map(({ name }) => name);
  }
}

const start = () => startHost({ agents: { Room } });

/** Names that the client puts into the URL as they are; the URL parser encodes what it must. */
const PLAIN = [
  "room one",
  "ünïcödé 😀",
  "a+b",
  "a@b.c:8",
  "x;y,z",
  "(brackets)[]{}|^",
  "100% sure",
  "sub",
  "agents",
  "'quotes\"",
];

test("root names arrive as the app wrote them, by socket, request and identity", async () => {
  const host = await start();
  for (const name of PLAIN) {
    const { client, identities } = await connected(host, { agent: "Room", name });
    expect(identities, name).toEqual([{ name, agent: "room" }]);
    expect(client.name).toBe(name);
    const response = await agentFetch({ host: addressOf(host), agent: "Room", name });
    expect(await response.json(), name).toEqual([name]);
    expect(await host.getAgentByName(Room, name).ids(), name).toEqual([client.id]);
  }
});

test("root names with slashes, marks and hashes arrive when the app encodes them", async () => {
  const host = await start();
  for (const name of ["a/b", "what?", "no #1", "../up", "%41", "a%2Fb", "back\\slash"]) {
    const { client, identities } = await connected(host, { agent: "Room", name: encodeURIComponent(name) });
    expect(identities, name).toEqual([{ name, agent: "room" }]);
    expect(await host.getAgentByName(Room, name).ids(), name).toEqual([client.id]);
    const response = await fetch(host.url + buildAgentPath([{ className: "Room", name }]));
    expect(await response.json(), name).toEqual([name]);
  }
});

test("a bare slash in a root name is a path, not a name", async () => {
  const host = await start();
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  atEnd(() => warn.mockRestore());
  const { identities } = await connected(host, { agent: "Room", name: "a/b" });
  expect(identities).toEqual([{ name: "a", agent: "room" }]);
});

/** Child names are encoded by the client, so any text must come back the same. */
const CHILD = [
  "with space",
  "a/b/c",
  "100%",
  "%20",
  "a%2Fb",
  "no #1",
  "why?",
  "a?b=c&d=e#f",
  "+plus+",
  "ünïcödé 😀 文字",
  "sub",
  "sub/room/x",
  "...",
  "'\"<>`{}|\\^",
  "line\nbreak\ttab",
  "x".repeat(500),
];

test("child names of every kind round-trip, by socket and by request", async () => {
  const host = await start();
  for (const name of CHILD) {
    const path = `sub/room/${encodeURIComponent(name)}`;
    const { identities, client } = await connected(host, { agent: "Room", name: "root", path });
    expect(identities, name).toEqual([{ name, agent: "room" }]);
    client.close();
    const response = await agentFetch({ host: addressOf(host), agent: "Room", name: "root", path });
    expect(await response.json(), name).toEqual(["root", name]);
  }
});

test("names differ by letter case, by normal form and by a slash: each is an agent of its own", async () => {
  const host = await start();
  const names = ["Case", "case", "é", "e\u0301", "a/b", "a%2Fb", "a b"];
  const clients = [];
  for (const name of names) {
    clients.push(await connected(host, { agent: "Room", name: "root", path: `sub/room/${encodeURIComponent(name)}` }));
  }
  expect(clients.map(({ identities }) => identities[0]?.name)).toEqual(names);
  expect(host.status().kept).toBe(names.length + 1);
});

test("impossible child names are refused: 400 by request, for good by socket", async () => {
  const host = await start();
  for (const segment of ["a%00b", "%E0%A4%A", "%ff", "x".repeat(600)]) {
    const url = `${host.url}/agents/room/root/sub/room/${segment}`;
    const response = await fetch(url);
    expect([response.status, await response.text()], segment).toEqual([400, "Bad Request"]);
    const { ws } = await rawSocket(url);
    const closed = await new Promise<CloseEvent>((resolve) => ws.addEventListener("close", resolve));
    expect(closed.code, segment).toBe(4400);
  }
  expect((await fetch(`${host.url}/agents/room/a%00b`)).status).toBe(400);
  expect(host.status().kept).toBe(0);
});
