import { createCollection, inArray } from "@tanstack/db";
import { createClaims, createToolExecutionEffect, logCollectionOptions, openLocalLog } from "perdure/collections";
import type { ClaimRecord } from "perdure/collections";
import { expect, test } from "vitest";
import { numbers, pause } from "../random.ts";
import { add, openCalls, pending } from "./calls.ts";
import { until } from "../../support/until.ts";

test.each([true, false])(
  "whatever order calls are cancelled, put back and deleted in, none is left behind (claims: %s)",
  async (withClaims) => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = numbers(seed * 7919);
      const log = openLocalLog();
      const { rows } = openCalls(log);
      const ids = ["a", "b", "c"];
      const running = new Map<string, number>();
      let most = 0;
      const worker = () => {
        const { calls } = openCalls(log);
        const collection = createCollection(
          logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id }),
        );
        const claims = withClaims ? createClaims({ collection, leaseMs: 60_000 }) : undefined;
        const effect = createToolExecutionEffect({
          query: (q) =>
            q
              .from({ c: calls })
              .where(({ c }) => inArray(c.status, withClaims ? ["pending", "executing"] : ["pending"])),
          tools: [add],
          collection: calls,
          ...(claims === undefined ? {} : { claims }),
          retry: { maxAttempts: 1_000, delayMs: 1, maxDelayMs: 2 },
          concurrency: 1 + random(3),
          implementations: {
            add: async (_args, { idempotencyKey, signal }) => {
              const now = (running.get(idempotencyKey) ?? 0) + 1;
              running.set(idempotencyKey, now);
              // With a claim the next one waits until the last one has let go of it.
              if (withClaims) most = Math.max(most, now);
              await pause(random(10));
              running.set(idempotencyKey, (running.get(idempotencyKey) ?? 1) - 1);
              if (random(4) === 0) throw new Error("bad luck");
              if (random(2) === 0) signal.throwIfAborted();
              return { sum: 1 };
            },
          },
          onProblem: () => {},
        });
        return { effect, claims };
      };
      const workers = [worker(), worker()];
      const set = (id: string, status: string) => rows.update(id, (row) => void (row.status = status as "pending"));
      for (const id of ids) await rows.insert(pending(id));
      for (let step = 0; step < 40; step++) {
        const id = ids[random(ids.length)]!;
        const what = random(7);
        if (what === 0) await set(id, "cancelled");
        else if (what === 1) await set(id, "pending");
        else if (what === 2) await rows.delete(id);
        else if (what === 3) await rows.insert(pending(id));
        else if (what === 4 && step % 9 === 0) {
          const old = workers.shift()!;
          workers.push(worker());
          await old.effect.dispose();
          await old.claims?.dispose();
        } else await pause(random(12));
      }
      for (const id of ids) if (rows.get(id) === undefined) await rows.insert(pending(id));
      const over = () => rows.all().every((row) => ["completed", "cancelled"].includes(row.status));
      await until(
        over,
        `seed ${seed}: ${JSON.stringify(rows.all().map(({ id, status, attempt }) => [id, status, attempt]))}: the end`,
      );
      expect(most, `seed ${seed}`).toBeLessThanOrEqual(1);
      for (const { effect, claims } of workers) {
        await effect.dispose();
        await claims?.dispose();
      }
    }
  },
);
