// Sessions, forks, views and branches in any order, against a model that knows nothing of rows.
import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { plainSql } from "../../test/support/plain-sql.ts";
import { seeded } from "../../test/support/seeded.ts";
import type { Sql } from "../port.ts";
import { SessionManager } from "./session-manager.ts";

const SEEDS = 15;
const STEPS = 60;

/** What each session shows, oldest first, by its id. */
type Model = Map<string, string[]>;

function expectWhole(sql: Sql): void {
  const broken = sql.sql(
    `SELECT seq FROM perdure_message AS m WHERE parent IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM perdure_message WHERE seq = m.parent)
     UNION ALL SELECT leaf FROM perdure_session WHERE leaf IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM perdure_message WHERE seq = leaf)
     UNION ALL SELECT seq FROM perdure_message AS m WHERE session <> 'main'
     AND NOT EXISTS (SELECT 1 FROM perdure_session WHERE id = m.session AND view_of IS NULL)`,
  );
  expect(broken).toEqual([]);
}

/** @returns the messages that are left when every session is deleted or cleared. */
async function run(seed: number): Promise<readonly unknown[]> {
  const int = seeded(seed);
  const pick = <T>(list: readonly T[]): T => list[int(list.length)] as T;
  const clock = manualClock();
  const sql = plainSql();
  const manager = SessionManager.open({ ...sql, clock });
  const model: Model = new Map([["main", []]]);
  const views = new Map<string, string>();
  /** What a session has: what was said there, and what it was forked with. */
  const has = new Map<string, Set<string>>([["main", new Set()]]);
  const ownerOf = (id: string): string => views.get(id) ?? id;
  let made = 0;

  const act = [
    function append(id: string, shown: string[]) {
      const message = `m${++made}`;
      has.get(ownerOf(id))?.add(message);
      const parentId = shown.length > 0 && int(3) === 0 ? pick(shown) : undefined;
      manager.of(id).appendMessage({ id: message, role: "user", parts: [] }, parentId);
      model.set(id, [...(parentId === undefined ? shown : shown.slice(0, shown.indexOf(parentId) + 1)), message]);
    },
    function fork(id: string, shown: string[]) {
      const at = shown.length > 0 && int(2) === 0 ? pick(shown) : undefined;
      const fresh = manager.fork(id, { id: `s${++made}`, ...(at !== undefined && { at }) });
      const path = at === undefined ? shown : shown.slice(0, shown.indexOf(at) + 1);
      model.set(fresh.id, path);
      has.set(fresh.id, new Set(path));
    },
    function view(id: string, shown: string[]) {
      const fresh = manager.openView(id);
      views.set(fresh, ownerOf(id));
      model.set(fresh, shown);
    },
    function branch(id: string, shown: string[]) {
      const siblings = shown.flatMap((one) =>
        manager
          .of(id)
          .getSiblings(one)
          .map((message) => message.id),
      );
      const other = siblings.filter((one) => !shown.includes(one));
      if (other.length === 0) return;
      const target = pick(other);
      const leaf = manager.of(id).switchBranch(target);
      const path = manager
        .of(id)
        .getHistory(leaf)
        .map((message) => message.id);
      expect([...siblings, ...path].filter((one) => has.get(ownerOf(id))?.has(one) !== true)).toEqual([]);
      // Which end it comes to depends on what was said there. It shows what was asked for, and ends where nothing follows.
      expect(path).toContain(target);
      expect(manager.of(id).getBranches(leaf)).toEqual([]);
      model.set(id, path);
    },
    function remove(id: string, shown: string[]) {
      if (shown.length === 0) return;
      const gone = pick(shown);
      manager.of(id).deleteMessages([gone]);
      for (const [one, path] of model)
        model.set(
          one,
          path.filter((message) => message !== gone),
        );
    },
    function clear(id: string) {
      manager.clear(id);
      has.set(ownerOf(id), new Set());
      for (const one of model.keys()) if (ownerOf(one) === ownerOf(id)) model.set(one, []);
    },
    function drop(id: string) {
      if (id === "main") return;
      manager.delete(id);
      for (const one of [...model.keys()]) if (one === id || views.get(one) === id) model.delete(one);
    },
  ];

  for (let step = 0; step < STEPS; step++) {
    const id = pick([...model.keys()]);
    // The last ones, which make everything small again, are rare.
    const work = act[int(20) === 0 ? 4 + int(3) : int(4)] ?? act[0];
    const context = `seed ${seed}, step ${step}: ${work?.name} of ${id}`;
    work?.(id, model.get(id) ?? []);
    await clock.set(clock.now() + int(3) - 1);
    expectWhole(sql);
    for (const [one, path] of model)
      expect(
        manager
          .of(one)
          .getHistory()
          .map((message) => message.id),
        `${context}, as ${one} shows it`,
      ).toEqual(path);
  }
  for (const id of [...model.keys()]) if (id !== "main") manager.delete(id);
  manager.clear("main");
  return sql.sql("SELECT seq FROM perdure_message");
}

test.each(Array.from({ length: SEEDS }, (_, n) => n + 1))("sessions in any order, seed %i", async (seed) => {
  expect(await run(seed)).toEqual([]);
});
