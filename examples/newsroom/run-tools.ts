// The program that runs tools: `node run-tools.ts <address of the session>`. Start more of them to share the work.
import { setTimeout } from "node:timers/promises";
import { inArray } from "@tanstack/db";
import { createApprovals, createClaims, createToolExecutionEffect } from "perdure/collections";
import { openLog } from "./log.ts";
import { openSession } from "./session.ts";
import { publish, searchArchive } from "./tools.ts";

const LEASE_MS = 5_000;
const WORK_MS = Number(process.env.WORK_MS ?? 1_500);

const { toolCalls, approvals, claims } = openSession(openLog(process.argv[2] ?? ""));

/** The printer's own books. */
const printed = new Map<string, number>();

createToolExecutionEffect({
  // Those that are being executed too: if their worker died, somebody must go on.
  query: (q) => q.from({ call: toolCalls }).where(({ call }) => inArray(call.status, ["pending", "executing"])),
  collection: toolCalls,
  claims: createClaims({ collection: claims, leaseMs: LEASE_MS }),
  approvals: createApprovals({ events: approvals }),
  tools: [searchArchive, publish],
  implementations: {
    searchArchive: async ({ subject }) => {
      await setTimeout(WORK_MS);
      return { found: [`"All about ${subject}", page 3`, `A letter on ${subject}, 1921`] };
    },
    publish: async (_story, { idempotencyKey }) => {
      await setTimeout(WORK_MS);
      // After a crash the same call may come again. Its key is the same, so it is not printed twice.
      const edition = printed.get(idempotencyKey) ?? printed.size + 1;
      printed.set(idempotencyKey, edition);
      return { edition };
    },
  },
});

// Started by another program, it ends with it.
process.once("disconnect", () => process.exit());
