// A tiny durable program for the self-test of the crash harness: it accepts jobs, does each in two steps and keeps
// everything in SQLite. FAULT makes it break one promise on purpose.
import { join } from "node:path";
import Database from "better-sqlite3";
import { crashPoint, onCommand, programDir, report } from "perdure/testing";

const fault = process.env.FAULT ?? "none";
const db = new Database(join(programDir(), "jobs.db"));
db.pragma("journal_mode = WAL");
db.exec("create table if not exists job (id integer primary key, steps integer not null, effects integer not null)");

const committed = crashPoint();
function write(sql: string, ...args: number[]): void {
  db.prepare(sql).run(...args);
  committed();
}

const ids = () => db.prepare<[], number>("select id from job").pluck().all();

function store(id: number): void {
  if (!ids().includes(id)) write("insert into job values (?, 0, 0)", id);
}

function work(id: number): void {
  const steps = db.prepare<[number], number>("select steps from job where id = ?").pluck().get(id) ?? 0;
  if (fault === "effect twice") {
    // The effect and the note that it was done are two commits.
    for (let step = steps; step < 1; step++) write("update job set effects = effects + 1 where id = ?", id);
    for (let step = steps; step < 1; step++) write("update job set steps = 2 where id = ?", id);
  } else {
    for (let step = steps; step < 2; step++) {
      write("update job set steps = steps + 1, effects = effects + ? where id = ?", step, id);
    }
  }
}

let told: number[] = [];
function flushTold(): void {
  const late = told;
  told = [];
  for (const id of late) {
    store(id);
    work(id);
  }
}

function accept(id: number): void {
  if (fault === "told too early") {
    report({ type: "accepted", id });
    flushTold();
    told.push(id);
  } else {
    store(id);
    report({ type: "accepted", id });
    work(id);
  }
}

if (fault === "exits") process.exit(3);
const left = ids();
if (fault !== "forgets to go on") for (const id of left) work(id);
report({ type: "ready" });
onCommand((command) => {
  if (fault === "hangs after a restart" && left.length > 0) return;
  if (typeof command === "number") return accept(command);
  flushTold();
  report({ type: "result", jobs: db.prepare("select id, steps, effects from job order by id").all() });
});
