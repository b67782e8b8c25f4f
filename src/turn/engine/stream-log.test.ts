import { expect, test } from "vitest";
import { probeHost, type ProbeHost } from "../../../test/chat/probe-host.ts";
import { deleteChunks } from "../../store/stream.ts";
import { type LoggedChunk, StreamLog } from "./stream-log.ts";

const TURN = 7;
const KEPT = { keep: true, level: "commit" } as const;
const PASSING = { keep: false, level: "commit" } as const;

/** More than one row holds. */
const ROW_CHARS = 600_000;

function open(probe: ProbeHost, turn = TURN): { log: StreamLog; out: LoggedChunk[] } {
  const out: LoggedChunk[] = [];
  return { log: new StreamLog(probe.host, turn, (chunks) => out.push(...chunks)), out };
}

const bodies = (count: number, from = 0) => Array.from({ length: count }, (_, i) => JSON.stringify({ n: from + i }));
const rowCount = ({ host }: ProbeHost) => host.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_stream")[0]?.n;
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("chunks are numbered from 0, handed on once and in order, and can be read again from any number", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  const all = bodies(5);
  for (const body of all.slice(0, 3)) log.append(body, KEPT);
  log.flush();
  for (const body of all.slice(3)) log.append(body, KEPT);
  log.flush();
  expect(out).toEqual(all.map((body, seq) => ({ body, seq })));
  for (let from = 0; from <= 5; from++) expect(log.read(from)).toEqual(all.slice(from));
  expect(log.count).toBe(5);
});

test("numbers go on after a restart", async () => {
  const probe = await probeHost();
  const first = open(probe).log;
  for (const body of bodies(3)) first.append(body, KEPT);
  first.flush();
  const { log, out } = open(probe);
  log.append("9", KEPT);
  log.flush();
  expect(out).toEqual([{ body: "9", seq: 3 }]);
  expect(log.read()).toEqual([...bodies(3), "9"]);
});

test("nothing is handed on before its commit", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("1", KEPT);
  expect(out).toEqual([]);
  expect(log.read()).toEqual([]);
  await settled();
  expect(out).toEqual([{ body: "1", seq: 0 }]);
  expect(log.read()).toEqual(["1"]);
});

test("flushes of a transaction that is undone are pending again, in their order", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  const all = bodies(6);
  const undone = () =>
    probe.host.tx(() => {
      for (const pair of [all.slice(0, 2), all.slice(2, 4), all.slice(4)]) {
        for (const body of pair) log.append(body, KEPT);
        log.flush();
      }
      throw new Error("undone");
    });
  expect(undone).toThrow("undone");
  log.flush();
  expect(out).toEqual(all.map((body, seq) => ({ body, seq })));
  expect(log.read()).toEqual(all);
});

test("what comes within a window is one commit and one row", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("0", KEPT);
  await settled();
  const before = probe.commits();
  for (const body of bodies(40)) log.append(body, KEPT);
  await settled();
  expect(out).toHaveLength(1);
  await probe.clock.advance(1_000);
  expect(out).toHaveLength(41);
  expect(probe.commits() - before).toBe(1);
  expect(rowCount(probe)).toBe(2);
});

test("much at once is committed without waiting, and the producer is told to breathe", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  const crowded = bodies(1_000).filter((body) => log.append(body, KEPT));
  expect(crowded.length).toBeGreaterThan(0);
  expect(out.length).toBeGreaterThan(500);
  const large = open(probe, 8);
  expect(large.log.append(JSON.stringify("x".repeat(300_000)), KEPT)).toBe(true);
  expect(large.out).toHaveLength(1);
});

test("transient chunks are handed on in their place, without a number, and are not stored", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("1", KEPT);
  log.append('"ping"', PASSING);
  log.append("2", KEPT);
  log.flush();
  expect(out).toEqual([
    { body: "1", seq: 0 },
    { body: '"ping"', seq: undefined },
    { body: "2", seq: 1 },
  ]);
  expect(log.read()).toEqual(["1", "2"]);
  log.append('"ping"', PASSING);
  log.flush();
  expect(out).toHaveLength(4);
  expect(log.read()).toEqual(["1", "2"]);
});

test("a chunk that is too large for a row is spread over several, and characters stay whole", async () => {
  const probe = await probeHost();
  const { log } = open(probe);
  const texts = [
    "small",
    `a${"😀".repeat(ROW_CHARS)}`,
    "b",
    "y".repeat(ROW_CHARS),
    `${"z".repeat(ROW_CHARS - 2)}é`,
    "end",
  ];
  const all = texts.map((text) => JSON.stringify(text));
  for (const body of all) log.append(body, KEPT);
  log.flush();
  for (let from = 0; from <= all.length; from++) expect(log.read(from), `from ${from}`).toEqual(all.slice(from));
  const rows = probe.host.sql<{ size: number }>("SELECT length(CAST(chunks AS BLOB)) AS size FROM perdure_stream");
  for (const { size } of rows) expect(size).toBeLessThan(2_000_000);
  expect(open(probe).log.count).toBe(all.length);
});

test("halves of characters, line separators and NUL come back as they went", async () => {
  const probe = await probeHost();
  const { log } = open(probe);
  const texts = ["\ud83d", "\ude00", "a\nb\r\n", "\u2028\u2029", "\u0000", "😀"];
  const all = texts.map((text) => JSON.stringify({ text }));
  for (const body of all) log.append(body, KEPT);
  log.flush();
  expect(log.read().map((body) => (JSON.parse(body) as { text: string }).text)).toEqual(texts);
});

test("what is given to flush is part of the same commit", async () => {
  const probe = await probeHost();
  const { log } = open(probe);
  const before = probe.commits();
  log.append("1", KEPT);
  log.flush("sync", () => probe.host.sql("INSERT INTO perdure_cell (key, value) VALUES ('k', 'x')"));
  expect(probe.commits() - before).toBe(1);
  expect(log.read()).toEqual(["1"]);
});

test("a commit that fails keeps the chunks for the next one", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("1", KEPT);
  const broken = () => {
    throw new Error("no");
  };
  expect(() => log.flush("commit", broken)).toThrow("no");
  expect(out).toEqual([]);
  log.append("2", KEPT);
  log.flush();
  expect(out).toEqual([
    { body: "1", seq: 0 },
    { body: "2", seq: 1 },
  ]);
  expect(log.read()).toEqual(["1", "2"]);
});

test("inside a transaction that is undone, the chunks are handed on and stored with the next commit, in order", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("1", KEPT);
  const undone = () =>
    probe.host.tx(() => {
      log.append("2", KEPT);
      log.flush();
      log.append("3", KEPT);
      throw new Error("undone");
    });
  expect(undone).toThrow("undone");
  expect(out).toEqual([]);
  expect(log.read()).toEqual([]);
  log.append("4", KEPT);
  log.flush();
  expect(out.map(({ body }) => body)).toEqual(["1", "2", "3", "4"]);
  expect(log.read()).toEqual(["1", "2", "3", "4"]);
});

test("chunks of a transaction that was undone do not need another one to be stored", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  const undone = () =>
    probe.host.tx(() => {
      log.append("1", KEPT);
      log.flush();
      throw new Error("undone");
    });
  expect(undone).toThrow("undone");
  await probe.clock.advance(1_000);
  expect(out).toEqual([{ body: "1", seq: 0 }]);
});

test("inside a transaction nothing is handed on before its end", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  probe.host.tx(() => {
    log.append("1", KEPT);
    log.flush();
    expect(out).toEqual([]);
  });
  expect(out).toEqual([{ body: "1", seq: 0 }]);
});

test("after its end a log takes and hands on nothing more", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  log.append("1", KEPT);
  log.close();
  log.append("2", KEPT);
  log.flush("sync", () => probe.host.sql("INSERT INTO perdure_cell (key, value) VALUES ('k', 'x')"));
  await probe.clock.advance(1_000);
  expect(out).toEqual([]);
  expect(rowCount(probe)).toBe(0);
  expect(probe.host.sql("SELECT 1 FROM perdure_cell")).toEqual([]);
});

test("logs of different turns do not mix", async () => {
  const probe = await probeHost();
  const one = open(probe, 1).log;
  const two = open(probe, 2).log;
  one.append("1", KEPT);
  two.append("2", KEPT);
  one.append(JSON.stringify("x".repeat(ROW_CHARS + 1)), KEPT);
  two.flush();
  one.flush();
  expect(two.read()).toEqual(["2"]);
  deleteChunks(probe.host, 1);
  expect(one.read()).toEqual([]);
  expect(two.read()).toEqual(["2"]);
});

test("what is pending when the log ends is handed on after the commit that deletes the log, and is not written first", async () => {
  const probe = await probeHost();
  const { log, out } = open(probe);
  const all = bodies(5);
  for (const body of all.slice(0, 2)) log.append(body, KEPT);
  log.flush();
  for (const body of all.slice(2)) log.append(body, KEPT);
  log.append("passing", PASSING);
  const rows: unknown[] = [];
  const end = () => {
    rows.push(rowCount(probe));
    expect(log.read(1)).toEqual(all.slice(1));
    deleteChunks(probe.host, TURN);
    expect(out.length).toBe(2);
  };
  const broken = () => {
    end();
    throw new Error("no");
  };
  expect(() => log.flush("sync", broken, true)).toThrow("no");
  // It did not end: what was pending still is, and would be stored.
  expect([log.read(), out.length]).toEqual([all.slice(0, 2), 2]);
  log.flush("sync", end, true);
  expect(rows).toEqual([1, 1]);
  expect(rowCount(probe)).toBe(0);
  expect(out.map(({ body }) => body)).toEqual([...all, "passing"]);
});
