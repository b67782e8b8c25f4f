import type { AgentHost, Socket } from "../../port.ts";
import type { Bench, BenchCases, ConformanceClient } from "./bench.ts";
import { ensure, eventually, same, undo } from "./ensure.ts";

const MANY = 200;

interface Pair {
  readonly agent: AgentHost;
  readonly socket: Socket;
  readonly client: ConformanceClient;
}

/** A client, and the agent's end of the same socket. */
async function connect(bench: Bench, query = ""): Promise<Pair> {
  const agent = await bench.agent();
  const before = new Set(agent.sockets.all());
  const client = await bench.connect("a", query);
  let socket: Socket | undefined;
  await eventually(() => {
    socket = agent.sockets.all().find((each) => !before.has(each));
    return socket !== undefined;
  }, "the socket is listed");
  ensure(socket !== undefined, "the socket is listed");
  return { agent, socket, client };
}

async function receives(client: ConformanceClient, expected: readonly (string | Uint8Array)[]): Promise<void> {
  const length = () => client.received.length + (client.closed === undefined ? 0 : Infinity);
  await eventually(() => length() >= expected.length, `${expected.length} frames arrive`);
  same(client.received, expected, "frames");
}

export const socketCases: BenchCases = {
  "sockets: frames leave in the order of the sends, between writes of every kind": async (bench) => {
    const { agent, socket, client } = await connect(bench);
    agent.sql("CREATE TABLE t (value INTEGER)");
    const expected: string[] = [];
    for (let value = 0; value < MANY; value++) {
      const send = () => socket.send(`frame ${value}`);
      expected.push(`frame ${value}`);
      const write = () => agent.sql("INSERT INTO t VALUES (?)", value);
      if (value % 4 === 0) send();
      else if (value % 4 === 1) agent.tx(() => (write(), send()), "commit");
      else if (value % 4 === 2) agent.tx(() => (send(), write()), "sync");
      else agent.tx(() => agent.tx(() => (write(), send())), "commit");
    }
    await receives(client, expected);
  },
  "sockets: text stays text and bytes stay bytes": async (bench) => {
    const { socket, client } = await connect(bench);
    const frames = ["", "Zürich 👍", new Uint8Array([0, 255, 1]), new Uint8Array([9, 7, 9]).subarray(1, 2), "end"];
    for (const frame of frames) socket.send(frame);
    await receives(client, frames);
  },
  "gate: what a tx sent leaves only if it commits": async (bench) => {
    const { agent, socket, client } = await connect(bench);
    agent.sql("CREATE TABLE t (value TEXT)");
    undo(agent, () => {
      socket.send("undone");
      agent.sql("INSERT INTO t VALUES ('x')");
      socket.send("undone too");
    });
    agent.tx(() => {
      socket.send("outer");
      undo(agent, () => socket.send("inner, undone"));
      agent.tx(() => socket.send("inner"));
    });
    undo(agent, () => agent.tx(() => socket.send("inner of an undone one")));
    socket.send("last");
    await receives(client, ["outer", "inner", "last"]);
  },
  "gate: what a client has seen is there after a reopen": async (bench) => {
    const { agent, socket, client } = await connect(bench);
    agent.sql("CREATE TABLE t (value INTEGER)");
    for (let value = 1; value <= 20; value++) {
      agent.tx(() => agent.sql("INSERT INTO t VALUES (?)", value), value % 2 === 0 ? "commit" : "sync");
      socket.send(String(value));
    }
    await eventually(() => client.received.length > 0, "a frame arrives");
    const seen = Number(client.received.at(-1));
    await bench.reopen();
    const [row] = (await bench.agent()).sql<{ last: number }>("SELECT max(value) AS last FROM t");
    ensure((row?.last ?? 0) >= seen, `the client saw ${seen} and the rows end at ${row?.last}`);
  },
  "sockets: close comes after everything sent before, and ends the socket for good": async (bench) => {
    const { agent, socket, client } = await connect(bench);
    agent.sql("CREATE TABLE t (value TEXT)");
    socket.send("first");
    agent.sql("INSERT INTO t VALUES ('x')");
    socket.send("second");
    socket.close(4001, "enough");
    await eventually(() => client.closed !== undefined, "the socket closes");
    same(client.received, ["first", "second"], "frames");
    same(client.closed, { code: 4001, reason: "enough" }, "how it closed");
    await eventually(() => !socket.open && agent.sockets.all().length === 0, "it is listed no more");
    socket.send("too late");
    socket.close();
  },
  "sockets: are listed oldest first, by tag too, until they leave": async (bench) => {
    const first = await connect(bench, "tag=x&tag=y");
    const second = await connect(bench, "tag=y");
    const { sockets } = first.agent;
    const listed = (tag?: string) =>
      sockets.all(tag).map((each) => [first, second].findIndex((pair) => pair.socket === each));
    same([listed(), listed("x"), listed("y"), listed("z")], [[0, 1], [0], [0, 1], []], "listed");
    first.client.close();
    await eventually(() => sockets.all().length === 1, "one is left");
    same([listed(), listed("x"), listed("y")], [[1], [], [1]], "listed");
    await eventually(() => (bench.probe.find("a")?.closes.length ?? 0) === 1, "the agent hears of it");
  },
  "sockets: know where they came from and keep their attachment": async (bench) => {
    const { agent, socket } = await connect(bench, "_pk=me&x=1");
    same(socket.id, "me", "id");
    same(new URL(socket.uri, "http://host.invalid").searchParams.get("x"), "1", "a parameter of the URI");
    socket.attachment = { n: 1 };
    same(agent.sockets.all()[0]?.attachment, { n: 1 }, "attachment");
  },
  "sockets: frames of a client wait until it is connected, in order": async (bench) => {
    const agent = await bench.agent();
    const gate = Promise.withResolvers<void>();
    let waited = false;
    bench.probe.hooks.onConnect = async ({ frames }) => {
      await gate.promise;
      waited = !frames.includes("1");
    };
    const client = await bench.connect("a");
    client.send("1");
    client.send(new Uint8Array([2]));
    client.send("3");
    // A round trip on a second socket: by then the frames of the first have reached the host.
    bench.probe.hooks.onConnect = undefined;
    const other = await bench.connect("a");
    other.send("other");
    const frames = () => bench.probe.find("a")?.frames ?? [];
    await eventually(() => frames().includes("other"), "another socket is served meanwhile");
    same(agent.sockets.all().length, 1, "sockets that are connected");
    gate.resolve();
    await eventually(() => frames().length === 4, "all frames arrive");
    ensure(waited, "no frame comes before connect is done");
    same(frames(), ["other", "1", new Uint8Array([2]), "3"], "frames");
  },
};
