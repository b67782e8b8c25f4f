import { join } from "node:path";
import Database from "better-sqlite3";
import { Agent, type AgentHost } from "perdure";
import { createWorkspaceTools, Workspace } from "perdure/tools";
import { createHost } from "perdure/node";
import { withFolder } from "../foundation/agent.ts";
import { rate } from "../foundation/measure.ts";
import type { Figure } from "../foundation/section.ts";
import { bestInTurns } from "./best.ts";
import { FILES, HITS, sampleFile, WANTED } from "./sample.ts";
import { searchInShell } from "./shell.ts";

const ROUNDS = 9;
const WRITES = 500;
const READS = 2_000;
const MARKS = 100;
const LONG_MS = 1e9;
const TEXT = "x".repeat(200);

let given: AgentHost | undefined;

class Files extends Agent {
  constructor(host: AgentHost) {
    super(host);
    given = host;
  }
  ping(): void {}
}

/** A workspace beside the same rows in bare SQLite. */
export function measureFiles(): Promise<Figure[]> {
  return withFolder(async (dir) => {
    const host = createHost({ agents: { Files }, dir: join(dir, "host"), idleMs: LONG_MS });
    await host.getAgentByName(Files, "one").ping();
    if (given === undefined) throw new Error("The agent was not made.");
    const raw = openRaw(join(dir, "raw.db"));
    try {
      return [
        ...(await smallFiles(new Workspace({ host: given, namespace: "small" }), raw)),
        ...(await search(new Workspace({ host: given, namespace: "search" }), raw, given)),
        ...(await points(new Workspace({ host: given, namespace: "points" }), raw)),
      ];
    } finally {
      raw.db.close();
      await host.stop();
    }
  });
}

async function smallFiles(workspace: Workspace, raw: Raw): Promise<Figure[]> {
  let written = 0;
  const write = await bestInTurns(
    "highest",
    ROUNDS,
    () =>
      rate(WRITES, async () => {
        for (let i = 0; i < WRITES; i++) await workspace.writeFile(`/notes/${++written}.md`, TEXT);
      }),
    () =>
      rate(WRITES, () => {
        for (let i = 0; i < WRITES; i++) raw.put.run("/raw", String(++written), Buffer.from(TEXT));
      }),
  );
  raw.put.run("/raw", "read.md", Buffer.from(TEXT));
  await workspace.writeFile("/notes/read.md", TEXT);
  const read = await bestInTurns(
    "highest",
    ROUNDS,
    () =>
      rate(READS, async () => {
        for (let i = 0; i < READS; i++) await workspace.readFile("/notes/read.md");
      }),
    () =>
      rate(READS, () => {
        for (let i = 0; i < READS; i++) raw.get.get("/raw", "read.md")?.content.toString();
      }),
  );
  return [
    { what: "new files of 200 bytes", unit: "files/s", ...write, against: "better-sqlite3, one INSERT and commit" },
    { what: "reads of such a file", unit: "reads/s", ...read, against: "better-sqlite3, one SELECT" },
  ];
}

async function search(workspace: Workspace, raw: Raw, host: AgentHost): Promise<Figure[]> {
  for (let n = 0; n < FILES; n++) {
    const { path, text } = sampleFile(n);
    await workspace.writeFile(path, text);
    raw.put.run("/search", path, Buffer.from(text));
  }
  const { grep } = createWorkspaceTools(workspace, { bash: false, breathe: () => host.breathe() });
  const ours = async () => {
    const begun = performance.now();
    const output: unknown = await grep?.execute?.(
      { pattern: WANTED },
      { toolCallId: "bench", messages: [], context: {} },
    );
    if ((output as { matches?: number }).matches !== HITS) throw new Error(`grep: ${JSON.stringify(output)}`);
    return performance.now() - begun;
  };
  const bare = async () => {
    const begun = performance.now();
    const wanted = new RegExp(WANTED);
    let hits = 0;
    for (const { content } of raw.all.all("/search")) {
      for (const line of content.toString().split("\n")) if (wanted.test(line)) hits++;
    }
    if (hits !== HITS) throw new Error(`The bare search found ${hits}.`);
    return performance.now() - begun;
  };
  const tool = await bestInTurns("lowest", ROUNDS, ours, bare);
  const shell = await searchInShell(workspace);
  const what = `\`grep -r\` of the shell over the workspace, ${FILES.toLocaleString("en-US")} files`;
  const rows = "better-sqlite3, RegExp on each line";
  return [
    {
      ...{ what: `\`grep\` over ${FILES.toLocaleString("en-US")} files of 2 KB`, unit: "ms", ...tool },
      against: rows,
    },
    { what, unit: "ms", ours: shell.ours, bare: tool.bare, against: rows },
    { what: "the same", unit: "ms", ...shell, against: "just-bash in its own thread, files in memory" },
  ];
}

async function points(workspace: Workspace, raw: Raw): Promise<Figure[]> {
  const fill = async (text: string) => {
    for (let n = 0; n < FILES; n++) await workspace.writeFile(`/points/${n}.md`, text);
  };
  await fill(TEXT);
  raw.db.transaction(() => {
    for (let n = 0; n < FILES; n++) raw.put.run("/points", String(n), Buffer.from(TEXT));
  })();
  let marks = 0;
  const mark = await bestInTurns(
    "highest",
    ROUNDS,
    () =>
      rate(MARKS, () => {
        for (let i = 0; i < MARKS; i++) workspace.mark(`message-${++marks}`);
      }),
    () =>
      rate(MARKS, () => {
        for (let i = 0; i < MARKS; i++) raw.put.run("/marks", String(++marks), Buffer.from("1"));
      }),
  );
  const bare = async () => {
    const begun = performance.now();
    raw.db.transaction(() => {
      for (let n = 0; n < FILES; n++) raw.put.run("/points", String(n), Buffer.from(TEXT));
    })();
    return performance.now() - begun;
  };
  const restoreAfter = (change: () => Promise<void>) => async () => {
    workspace.mark("before");
    await change();
    const begun = performance.now();
    workspace.restore("before");
    return performance.now() - begun;
  };
  const all = await bestInTurns(
    "lowest",
    ROUNDS,
    restoreAfter(() => fill("changed")),
    bare,
  );
  const few = await bestInTurns(
    "lowest",
    ROUNDS,
    restoreAfter(() => workspace.writeFile("/points/1.md", "changed")),
    bare,
  );
  const count = FILES.toLocaleString("en-US");
  const against = `better-sqlite3, ${count} rows written in one transaction`;
  return [
    {
      ...{ what: `points made, with ${count} files`, unit: "points/s", ...mark },
      against: "better-sqlite3, one INSERT and commit",
    },
    { what: `\`restore\` of ${count} files that all changed`, unit: "ms", ...all, against },
    { what: `\`restore\` of 1 of ${count}`, unit: "ms", ...few, against },
  ];
}

type Raw = ReturnType<typeof openRaw>;

function openRaw(file: string) {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("locking_mode = EXCLUSIVE");
  db.pragma("synchronous = NORMAL");
  db.exec("CREATE TABLE file (parent TEXT, name TEXT, content BLOB, PRIMARY KEY (parent, name)) WITHOUT ROWID");
  return {
    db,
    put: db.prepare<[string, string, Buffer]>("INSERT OR REPLACE INTO file VALUES (?, ?, ?)"),
    get: db.prepare<[string, string], { content: Buffer }>("SELECT content FROM file WHERE parent = ? AND name = ?"),
    all: db.prepare<[string], { content: Buffer }>("SELECT content FROM file WHERE parent = ?"),
  };
}
