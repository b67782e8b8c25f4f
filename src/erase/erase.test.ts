import { expect, test } from "vitest";
import { diskProbe } from "../../test/support/disk-probe.ts";
import { probeHost } from "../../test/chat/probe-host.ts";
import { assistant, say, user } from "../../test/support/tree-messages.ts";
import type { Part, UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import { insertAgentRun } from "../store/agent-run.ts";
import { listCells, writeCell } from "../store/cell.ts";
import { finishCompaction, startCompaction } from "../store/compaction.ts";
import { insertQuestion } from "../store/tool-call.ts";
import { insertSession, listSessionLines, setCurrent } from "../store/session.ts";
import { appendChunks } from "../store/stream.ts";
import { insertSubmission } from "../store/submission.ts";
import { insertTurn, settleTurn } from "../store/turn.ts";
import { insertUsage } from "../store/usage.ts";
import { addUsageTotal, noUsage, readUsageTotal } from "../store/usage-total.ts";
import { erase, type EraseDeps, finishErase, listReceipts } from "./erase.ts";
import { filesOf } from "../media/files.ts";
import { SessionSearch } from "../search/search.ts";

const SECRET = "Zanzibarquartz";

function depsOf(host: AgentHost): EraseDeps & { stopped: string[][]; told: string[][] } {
  const stopped: string[][] = [];
  const told: string[][] = [];
  return {
    ...{ host, stopped, told },
    stop: async (sessions) => void stopped.push([...sessions]),
    erased: (sessions) => void told.push([...sessions]),
  };
}

const ids = (host: AgentHost) =>
  host.sql<{ id: string }>("SELECT id FROM perdure_message ORDER BY seq").map(({ id }) => id);

const call = (id: string, text: string): UIMessage =>
  assistant(id, {
    ...{ type: "tool-note", toolCallId: `call-${id}`, state: "output-available" },
    ...{ input: { text }, output: text },
  } as Part);

/** Puts words of a session into every kind of row. */
async function fill(host: AgentHost, session: string, word: string): Promise<{ file: string; at: number }> {
  insertSession(host, { id: session, name: `About ${word}`, namedBy: "model" }, 0);
  const file = await filesOf(host).put(new TextEncoder().encode(`${word} in a file. `.repeat(50)), "text/plain");
  say(host, session, user(`${session}-u`, `Tell me about ${word}`));
  const at = say(host, session, call(`${session}-a`, `${word} is in ${file.name}`));
  const turnId = `turn-${session}`;
  const turn = insertTurn(host, {
    ...{ id: turnId, status: "accepted", trigger: "submit", continuation: 0, messageIds: "[]", session },
    ...{ body: JSON.stringify({ word }), clientTools: null, notBefore: 0, createdAt: 0 },
  });
  appendChunks(host, turn.seq, 0, [JSON.stringify({ delta: word }), JSON.stringify({ delta: word })]);
  settleTurn(host, turn.seq, "error", `no ${word}`, 0);
  insertSubmission(host, {
    ...{ id: `sub-${session}`, idempotencyKey: null, metadata: JSON.stringify({ word }), turnId, createdAt: 0 },
    messages: JSON.stringify([user(`${session}-u`, word)]),
  });
  insertQuestion(host, {
    ...{ messageId: `${session}-a`, toolCallId: `call-${session}-a`, turnId, step: 0, tool: "note" },
    ...{ input: JSON.stringify({ word }), digest: "d", replay: "never", askedAt: 0, expiresAt: null, summary: word },
  });
  insertUsage(host, {
    ...{ id: `use-${session}`, session, turnId, turnSeq: turn.seq, step: 0, attempt: 0, purpose: "turn" },
    ...{
      model: "m",
      modelIndex: 0,
      reservedTokens: 1,
      reservedCost: null,
      price: null,
      requestDigest: word,
      startedAt: 0,
    },
  });
  for (const [scope, key] of [
    ["turn", turnId],
    ["session", session],
    ["agent", ""],
  ] as const)
    addUsageTotal(host, scope, key, { ...noUsage, calls: 1, tokens: 7 });
  const compaction = startCompaction(host, {
    ...{ id: `c-${session}`, session, at, parts: null, kind: "summary", trigger: "manual", turn: null, step: null },
    ...{ call: null, prior: null, tokensBefore: 9, model: "m", focus: word, createdAt: 0 },
  });
  finishCompaction(
    host,
    compaction,
    {
      ...{ kind: "summary", at, parts: null, tokensAfter: 1, pins: "[]", calls: "[]", files: "[]" },
      ...{ summary: `All about ${word}`, carried: word },
    },
    0,
  );
  writeCell(host, `block:${session}:notes`, word);
  writeCell(host, `prompt:${session}`, word);
  return { file: file.name, at };
}

test("a session goes from every table, and another one stays whole", async () => {
  const { host } = await probeHost();
  const gone = await fill(host, "gone", SECRET);
  const stay = await fill(host, "stay", "Mumbaiopal");
  await new SessionSearch(host).search(SECRET);
  setCurrent(host, "gone");
  const deps = depsOf(host);
  const receipt = await erase(deps, { session: "gone" });
  expect(receipt).toMatchObject({
    ...{ scope: { session: "gone" }, sessions: 1, messages: 2, compactions: 1, searchRows: 2, streamChunks: 2 },
    ...{ files: 1, blocks: 1, turns: 1, toolCalls: 1, submissions: 1, usageCalls: 1, runs: [], done: true },
  });
  expect(deps.stopped).toEqual([["gone"]]);
  expect(deps.told).toEqual([["gone"]]);
  expect(listReceipts(host)).toEqual([receipt]);
  expect(JSON.stringify(receipt)).not.toContain(SECRET);
  const tables = host.sql<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'perdure_%' AND name NOT LIKE 'perdure_search%'",
  );
  for (const { name } of tables) {
    const rows = JSON.stringify(host.sql(`SELECT * FROM ${name}`));
    expect(rows, name).not.toContain(SECRET);
    expect(rows, name).not.toContain(gone.file);
  }
  expect(await new SessionSearch(host).search(SECRET)).toEqual([]);
  expect(await host.blobs.get(gone.file)).toBeUndefined();
  // What the other one has.
  expect(ids(host)).toEqual(["stay-u", "stay-a"]);
  expect(await new SessionSearch(host).search("Mumbaiopal")).toHaveLength(2);
  expect(await host.blobs.get(stay.file)).toBeDefined();
  expect(host.sql("SELECT id FROM perdure_compaction")).toEqual([{ id: "c-stay" }]);
  expect(listCells(host, "block:").map(({ key }) => key)).toEqual(["block:stay:notes"]);
  expect(listSessionLines(host, 9).map(({ id, current }) => [id, current])).toEqual([["stay", 1]]);
  // Money stays, without content.
  expect(readUsageTotal(host, "agent", "").tokens).toBe(14);
  expect(readUsageTotal(host, "session", "gone").tokens).toBe(7);
  expect(readUsageTotal(host, "turn", "turn-gone").tokens).toBe(0);
});

test("a fork keeps what it shows, and the receipt says so", async () => {
  const { host } = await probeHost();
  const { at, file } = await fill(host, "first", "before");
  insertSession(host, { id: "fork", leaf: at, parent: "first", forkAt: at }, 0);
  say(host, "first", user("later", SECRET));
  say(host, "fork", user("own", "mine"));
  insertSession(host, { id: "tab", leaf: at, viewOf: "first" }, 0);
  const receipt = await erase(depsOf(host), { session: "first" });
  expect(ids(host)).toEqual(["first-u", "first-a", "own"]);
  expect(receipt).toMatchObject({ messages: 1, sessions: 2, files: 0 });
  expect(receipt.kept[0]).toEqual({ what: "2 messages", why: expect.stringContaining('"fork"') });
  expect(await host.blobs.get(file)).toBeDefined();
  expect(listSessionLines(host, 9).map(({ id }) => id)).toEqual(["fork"]);
  expect(host.sql("SELECT DISTINCT session FROM perdure_message")).toEqual([{ session: "fork" }]);
  // Then the fork goes too, and with it the rest.
  expect(await erase(depsOf(host), { session: "fork" })).toMatchObject({ messages: 3 });
  expect(ids(host)).toEqual([]);
});

test("a file that another message names is kept, and goes with the last one", async () => {
  const { host } = await probeHost();
  const one = await fill(host, "one", "same");
  const two = await fill(host, "two", "same");
  expect(one.file).toBe(two.file);
  const receipt = await erase(depsOf(host), { session: "one" });
  expect(receipt.files).toBe(0);
  expect(receipt.kept).toContainEqual({ what: `the file ${one.file}`, why: "other messages refer to it" });
  expect(await host.blobs.get(one.file)).toBeDefined();
  expect(await erase(depsOf(host), { session: "two" })).toMatchObject({ files: 1 });
  expect(await host.blobs.get(one.file)).toBeUndefined();
});

test("a subject: its sessions, forks of them, its messages elsewhere, and the summaries that tell of those", async () => {
  const { host } = await probeHost();
  insertSession(host, { id: "a", subject: "ann@example.com" }, 0);
  const at = say(host, "a", user("a1", "one"));
  insertSession(host, { id: "b", subject: "ann@example.com", leaf: at, parent: "a", forkAt: at }, 0);
  say(host, "b", user("b1", "two"));
  say(host, "team", user("t1", "hello"));
  say(host, "team", { ...user("t2", SECRET), metadata: { subject: "ann@example.com" } });
  const last = say(host, "team", { ...user("t3", "bye"), metadata: { subject: "bob@example.com" } });
  say(host, "team", user("t4", 'the word "subject" and ann@example.com'));
  const note = (id: string, place: number) => {
    const seq = startCompaction(host, {
      ...{ id, session: "team", at: place, parts: null, kind: "summary", trigger: "manual", turn: null, step: null },
      ...{ call: null, prior: null, tokensBefore: 9, model: "m", focus: null, createdAt: 0 },
    });
    const end = { tokensAfter: 1, pins: "[]", calls: "[]", files: "[]", summary: id, carried: null };
    finishCompaction(host, seq, { kind: "summary", at: place, parts: null, ...end }, 0);
  };
  note("early", at + 2);
  note("late", last);
  const receipt = await erase(depsOf(host), { subject: "ann@example.com" });
  expect(ids(host)).toEqual(["t1", "t3", "t4"]);
  expect(receipt).toMatchObject({ messages: 3, sessions: 2, compactions: 1 });
  expect(receipt.scope).toEqual({ subjectDigest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(JSON.stringify(listReceipts(host))).not.toContain("ann@");
  expect(host.sql("SELECT id FROM perdure_compaction")).toEqual([{ id: "early" }]);
  // The conversation around it holds together.
  const parents = host.sql<{ id: string; parent: number | null }>(
    "SELECT id, parent FROM perdure_message ORDER BY seq",
  );
  expect(parents.map(({ parent }) => parent === null)).toEqual([true, false, false]);
  expect(await erase(depsOf(host), { subject: "nobody" })).toMatchObject({ messages: 0, done: true });
});

test("children that worked for it are deleted and listed; those of others with the same call are not", async () => {
  const { host } = await probeHost();
  await fill(host, "gone", "x");
  await fill(host, "stay", "y");
  const run = (runId: string, turnId: string | null, toolCallId: string) =>
    insertAgentRun(host, {
      ...{ runId, className: "Helper", turnId, toolCallId, input: JSON.stringify(SECRET), preview: null },
      ...{ display: null, displayOrder: null, delivery: "full", detached: null, startedAt: 0 },
    });
  run("mine", "turn-gone", "call-gone-a");
  run("forgotten", "a turn of long ago", "call-gone-a");
  run("theirs", "turn-stay", "call-gone-a");
  run("other", "turn-stay", "call-stay-a");
  const removed: unknown[] = [];
  const watched: AgentHost = new Proxy(host, {
    get(target, key) {
      if (key === "remove") return async (path: unknown) => void removed.push(path);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const receipt = await erase(depsOf(watched), { session: "gone" });
  expect(new Set(receipt.runs)).toEqual(new Set(["mine", "forgotten"]));
  expect(removed).toHaveLength(2);
  expect(removed).toContainEqual([...host.path, { className: "Helper", name: "mine" }]);
  const left = host.sql<{ id: string }>("SELECT run_id AS id FROM perdure_agent_run ORDER BY seq");
  expect(left.map(({ id }) => id)).toEqual(["theirs", "other"]);
});

test("what cannot be deleted is said in the receipt", async () => {
  const { host } = await probeHost();
  const { file } = await fill(host, "gone", "x");
  const broken: AgentHost = new Proxy(host, {
    get(target, key) {
      if (key === "scrub") return () => Promise.reject(new Error("disk full"));
      if (key === "blobs") return { ...host.blobs, delete: () => Promise.reject(new Error("read-only")) };
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const receipt = await erase(depsOf(broken), { session: "gone" });
  expect(receipt.kept).toContainEqual({ what: `the file ${file}`, why: expect.stringContaining("read-only") });
  expect(receipt.kept).toContainEqual({
    what: expect.stringContaining("old pages"),
    why: expect.stringContaining("full"),
  });
});

test("a session that is written to while it is erased is tried again, and at last refused", async () => {
  const { host } = await probeHost();
  say(host, "main", user("m0", "x"));
  let n = 0;
  const deps: EraseDeps = { ...depsOf(host), stop: async () => {} };
  const busy: AgentHost = new Proxy(host, {
    get(target, key) {
      // Whoever lets others have their turn may find that something was said.
      if (key === "breathe") return async () => void (n++ < 2 && say(host, "main", user(`more${n}`, "y")));
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  expect(await erase({ ...deps, host: busy }, { session: "main" })).toMatchObject({ messages: 3 });
  const { seq } = insertTurn(host, {
    ...{ id: "t", status: "accepted", trigger: "submit", continuation: 0, messageIds: "[]", session: "main" },
    ...{ body: null, clientTools: null, notBefore: 0, createdAt: 0 },
  });
  say(host, "main", user("again", "x"));
  await expect(erase(deps, { session: "main" })).rejects.toMatchObject({ code: "bad_state" });
  settleTurn(host, seq, "aborted", null, 0);
  expect(await erase(deps, { session: "main" })).toMatchObject({ messages: 1, turns: 1 });
});

test.each([[{}], [{ session: "" }], [{ session: "a", subject: "b" }], [{ subject: 4 }]])(
  "refuses %j",
  async (scope) => {
    const { host } = await probeHost();
    await expect(erase(depsOf(host), scope as never)).rejects.toMatchObject({ code: "bad_input" });
  },
);

test("a session that is not there is refused", async () => {
  const { host } = await probeHost();
  await expect(erase(depsOf(host), { session: "nobody" })).rejects.toMatchObject({ code: "not_found" });
});

test("no byte of it is left on the disk: not in the database, its log, the index or files", async () => {
  const { host, filesWith, blobs } = await diskProbe();
  await fill(host, "gone", SECRET);
  await fill(host, "stay", "Mumbaiopal");
  // Words that were changed, and rows that are long enough to have pages of their own.
  const long = `${SECRET} `.repeat(2_000);
  for (let n = 0; n < 30; n++) say(host, "gone", user(`long${n}`, long));
  const search = new SessionSearch(host);
  expect(await search.search(SECRET)).not.toEqual([]);
  host.sql("UPDATE perdure_message SET body = ? WHERE id = 'long7'", JSON.stringify(user("long7", "short")));
  await search.search(SECRET);
  await host.durable();
  expect(filesWith(SECRET)).not.toEqual([]);
  expect(filesWith(SECRET.toLowerCase())).not.toEqual([]);
  expect(blobs()).toHaveLength(2);
  await erase(depsOf(host), { session: "gone" });
  expect(filesWith(SECRET)).toEqual([]);
  // As the index has it.
  expect(filesWith(SECRET.toLowerCase())).toEqual([]);
  expect(blobs()).toHaveLength(1);
  expect(filesWith("Mumbaiopal")).not.toEqual([]);
  expect(await search.search("Mumbaiopal")).toHaveLength(2);
  say(host, "stay", user("after", "still works"));
  expect(await search.search("works")).toHaveLength(1);
});

test("what was cut off after the rows were deleted is finished later", async () => {
  const { host } = await probeHost();
  const { file } = await fill(host, "gone", SECRET);
  const dying: AgentHost = new Proxy(host, {
    get(target, key) {
      if (key === "durable") return () => Promise.reject(new Error("dead"));
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  await expect(erase(depsOf(dying), { session: "gone" })).rejects.toThrow("dead");
  expect(ids(host)).toEqual([]);
  expect(await host.blobs.get(file)).toBeDefined();
  expect(listReceipts(host)).toMatchObject([{ done: false }]);
  await finishErase(host);
  expect(await host.blobs.get(file)).toBeUndefined();
  expect(listReceipts(host)).toMatchObject([{ done: true, files: 1, messages: 2 }]);
  expect(listCells(host, "erase:")).toEqual([]);
});
