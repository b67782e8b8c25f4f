import type Database from "better-sqlite3";
import type { AuditBook, AuditRow } from "../../admin/house.ts";

/** How many rows are kept, and how many more there may be before the oldest go. */
const KEPT = 10_000;
const SLACK = 500;

/** What operators did, in the host's own database. It is written before anything is done. @param write one commit of that database */
export function auditIn(db: Database.Database, write: (work: () => void) => void): AuditBook {
  db.exec(`
    CREATE TABLE IF NOT EXISTS audit (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, via TEXT NOT NULL, who TEXT NOT NULL,
      act TEXT NOT NULL, agent TEXT, detail TEXT, outcome TEXT
    ) STRICT
  `);
  const add = db.prepare("INSERT INTO audit (at, via, who, act, agent, detail) VALUES (?, ?, ?, ?, ?, ?)");
  const end = db.prepare("UPDATE audit SET outcome = ? WHERE seq = ?");
  const trim = db.prepare("DELETE FROM audit WHERE seq <= ?");
  const newest = db.prepare<[number], AuditRow>(
    "SELECT seq, at, via, who, act, agent, detail, outcome FROM audit ORDER BY seq DESC LIMIT (SELECT ?)",
  );
  return {
    note({ at, via, who, act, agent, detail }) {
      let seq = 0;
      write(() => {
        seq = Number(add.run(at, via, who, act, agent, detail).lastInsertRowid);
        if (seq % SLACK === 0) trim.run(seq - KEPT);
      });
      return seq;
    },
    settle: (seq, outcome) => write(() => end.run(outcome, seq)),
    list: (limit) => newest.all(limit),
  };
}
