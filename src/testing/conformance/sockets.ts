import type { AgentHost, Socket } from "../../port.ts";
import { type Bench, type BenchCases, type ConformanceClient, scenario } from "./bench.ts";
import { ensure, eventually, same, undo } from "./ensure.ts";

const MANY = 200;

/** A client of agent `a`, and what its socket is called on both ends. */
async function connect(bench: Pick<Bench, "connect" | "call">, id = "me", query = ""): Promise<ConformanceClient> {
  const client = await bench.connect("a", `_pk=${id}&${query}`);
  await eventually(async () => (await listed(bench)).includes(id), "the socket is listed");
  return client;
}

const listed = async (bench: Pick<Bench, "call">, ...tag: readonly string[]): Promise<string[]> =>
  (await bench.call("a", "sockets", ...tag)) as string[];

async function receives(client: ConformanceClient, expected: readonly (string | Uint8Array)[]): Promise<void> {
  const length = () => client.received.length + (client.closed === undefined ? 0 : Infinity);
  await eventually(() => length() >= expected.length, `${expected.length} frames arrive`);
  same(client.received, expected, "frames");
}

/** The agent's end of the one client. */
function socketOf(agent: AgentHost): Socket {
  const [socket, ...others] = agent.sockets.all();
  ensure(socket !== undefined && others.length === 0, "one socket is listed");
  return socket;
}

const manyFrames = (): string[] => Array.from({ length: MANY }, (_, value) => `frame ${value}`);
const frames = ["", "Zürich 👍", new Uint8Array([0, 255, 1]), new Uint8Array([9, 7, 9]).subarray(1, 2), "end"];

export const socketCases: BenchCases = {
  "sockets: frames leave in the order of the sends, between writes of every kind": scenario(
    {
      send(agent) {
        const socket = socketOf(agent);
        agent.sql("CREATE TABLE t (value INTEGER)");
        for (const [value, frame] of manyFrames().entries()) {
          const send = () => socket.send(frame);
          const write = () => agent.sql("INSERT INTO t VALUES (?)", value);
          if (value % 4 === 0) send();
          else if (value % 4 === 1) agent.tx(() => (write(), send()), "commit");
          else if (value % 4 === 2) agent.tx(() => (send(), write()), "sync");
          else agent.tx(() => agent.tx(() => (write(), send())), "commit");
        }
      },
    },
    async (bench) => {
      const client = await connect(bench);
      await bench.act("a", "send");
      await receives(client, manyFrames());
    },
  ),
  "sockets: text stays text and bytes stay bytes": scenario(
    {
      send(agent) {
        for (const frame of frames) socketOf(agent).send(frame);
      },
    },
    async (bench) => {
      const client = await connect(bench);
      await bench.act("a", "send");
      await receives(client, frames);
    },
  ),
  "gate: what a tx sent leaves only if it commits": scenario(
    {
      send(agent) {
        const socket = socketOf(agent);
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
      },
    },
    async (bench) => {
      const client = await connect(bench);
      await bench.act("a", "send");
      await receives(client, ["outer", "inner", "last"]);
    },
  ),
  "gate: what a client has seen is there after a reopen": scenario(
    {
      send(agent) {
        const socket = socketOf(agent);
        agent.sql("CREATE TABLE t (value INTEGER)");
        for (let value = 1; value <= 20; value++) {
          agent.tx(() => agent.sql("INSERT INTO t VALUES (?)", value), value % 2 === 0 ? "commit" : "sync");
          socket.send(String(value));
        }
      },
      last: (agent) => agent.sql<{ last: number | null }>("SELECT max(value) AS last FROM t")[0]?.last ?? 0,
    },
    async (bench) => {
      const client = await connect(bench);
      // What the call says is not waited for: the client must not see more than the rows have.
      const called = bench.act("a", "send").catch(() => undefined);
      await eventually(() => client.received.length > 0, "a frame arrives");
      const seen = Number(client.received.at(-1));
      await bench.reopen();
      await called;
      const last = await bench.act("a", "last");
      ensure(last >= seen, `the client saw ${seen} and the rows end at ${last}`);
    },
  ),
  "sockets: close comes after everything sent before, and ends the socket for good": scenario(
    {
      close(agent) {
        const socket = socketOf(agent);
        agent.sql("CREATE TABLE t (value TEXT)");
        socket.send("first");
        agent.sql("INSERT INTO t VALUES ('x')");
        socket.send("second");
        socket.close(4001, "enough");
        socket.send("too late");
        socket.close();
      },
    },
    async (bench) => {
      const client = await connect(bench);
      await bench.act("a", "close");
      await eventually(() => client.closed !== undefined, "the socket closes");
      same(client.received, ["first", "second"], "frames");
      same(client.closed, { code: 4001, reason: "enough" }, "how it closed");
      await eventually(async () => (await listed(bench)).length === 0, "it is listed no more");
    },
  ),
  "sockets: are listed oldest first, by tag too, until they leave": scenario({}, async (bench) => {
    const first = await connect(bench, "1", "tag=x&tag=y");
    await connect(bench, "2", "tag=y");
    const all = () => Promise.all([listed(bench), listed(bench, "x"), listed(bench, "y"), listed(bench, "z")]);
    same(await all(), [["1", "2"], ["1"], ["1", "2"], []], "listed");
    first.close();
    await eventually(async () => (await listed(bench)).length === 1, "one is left");
    same(await all(), [["2"], [], ["2"], []], "listed");
    const closes = async () => ((await bench.call("a", "closes")) as unknown[]).length;
    await eventually(async () => (await closes()) === 1, "the agent hears of it");
  }),
  "sockets: know where they came from and keep their attachment": scenario(
    {
      look(agent) {
        const socket = socketOf(agent);
        same(socket.id, "me", "id");
        same(new URL(socket.uri, "http://host.invalid").searchParams.get("x"), "1", "a parameter of the URI");
        socket.attachment = { n: 1 };
        same(agent.sockets.all()[0]?.attachment, { n: 1 }, "attachment");
      },
      later: (agent) => same(socketOf(agent).attachment, { n: 1 }, "attachment, later"),
    },
    async (bench) => {
      await connect(bench, "me", "x=1");
      await bench.act("a", "look");
      await bench.act("a", "later");
    },
  ),
  "sockets: frames of a client wait until it is connected, in order": scenario({}, async (bench) => {
    const received = async () => (await bench.call("a", "frames")) as unknown[];
    const client = await bench.connect("a", "_pk=slow&wait");
    client.send("1");
    client.send(new Uint8Array([2]));
    client.send("3");
    // A round trip on a second socket: by then the frames of the first have reached the host.
    const other = await connect(bench, "other");
    other.send("other");
    await eventually(async () => (await received()).includes("other"), "another socket is served meanwhile");
    same(await listed(bench), ["other"], "sockets that are connected");
    same(await received(), ["other"], "frames before connect is done");
    await bench.call("a", "let in");
    await eventually(async () => (await received()).length === 4, "all frames arrive");
    same(await received(), ["other", "1", new Uint8Array([2]), "3"], "frames");
  }),
};
