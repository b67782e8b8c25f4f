import { createCollection, inArray } from "@tanstack/db";
import { createClaims, createToolExecutionEffect, logCollectionOptions, openLocalLog } from "perdure/collections";
import type { ClaimRecord, RowLog } from "perdure/collections";
import { expect, test } from "vitest";
import { dying, moments } from "../dying.ts";
import { add, openCalls, pending } from "./calls.ts";
import { until } from "../../support/until.ts";

test.each(moments)("wherever a worker dies (%s a write), another one completes each call", async (moment) => {
  let survived = false;
  for (let at = 1; !survived; at++) {
    const what = `death at write ${at}`;
    const log = openLocalLog();
    const { rows } = openCalls(log);
    const ids = ["1", "2", "3"];
    const executed: string[] = [];
    const run = (on: RowLog) => {
      const { calls } = openCalls(on);
      const claims = createClaims({
        collection: createCollection(
          logCollectionOptions<ClaimRecord>({ log: on, name: "claims", getKey: (row) => row.id }),
        ),
        owner: "worker",
      });
      const effect = createToolExecutionEffect({
        query: (q) => q.from({ c: calls }).where(({ c }) => inArray(c.status, ["pending", "executing"])),
        tools: [add],
        collection: calls,
        claims,
        concurrency: 2,
        retry: { maxAttempts: 4, delayMs: 1 },
        implementations: {
          add: async ({ a, b }, { idempotencyKey, attempt }) => {
            executed.push(idempotencyKey);
            if (idempotencyKey === "2" && attempt === 1) throw new Error("not yet");
            return { sum: a + b };
          },
        },
        onProblem: () => {},
      });
      return { claims, effect };
    };
    const done = () => ids.every((id) => rows.get(id)?.status === "completed");
    const victim = dying(log, at, moment);
    run(victim.log);
    await rows.insertAll(ids.map((id) => pending(id)));
    survived = await Promise.race([victim.died.then(() => false), until(done).then(() => true)]);
    const stored = ids.filter((id) => rows.get(id)?.status === "completed");
    const before = executed.length;
    const second = run(log);
    await until(done, `${what}: the end`);
    for (const id of stored) expect(executed.slice(before), what).not.toContain(id);
    for (const id of ids)
      expect(executed.filter((one) => one === id).length, what).toBeLessThanOrEqual(id === "2" ? 3 : 2);
    await second.effect.dispose();
    await second.claims.dispose();
  }
});
