import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { type Random, seeded } from "../../test/support/seeded.ts";
import type { Sql } from "../port.ts";
import { overdueQuestions } from "../store/tool-call.ts";
import { CallBook, type CallRow } from "./call-book.ts";
import { mayRun } from "./call-move.ts";

// Any order of events, with any of them undone: what the book says happened is what did happen, and only what may.

const RUNS = 60;
const EVENTS = 80;
const IDS = ["a", "b", "c"];
const MESSAGES = ["m1", "m2"];
const DIGESTS = ["d1", "d2"];

/** What a careful bystander saw of one call. */
interface Witness {
  asked: number;
  decisions: string[];
  starts: number;
  safe: boolean;
  settles: number;
  digest: string;
}

type World = Map<string, Witness>;

class Undo extends Error {}

test("decided once, denied never started, settled once, counted exactly", async () => {
  const { host, clock } = await probeHost();
  const book = new CallBook(host);
  const seen = new Set<string>();
  for (let run = 0; run < RUNS; run++) {
    const rand = seeded(run);
    book.forgetLost();
    let world: World = new Map();
    for (let event = 0; event < EVENTS; event++) {
      await clock.advance(rand(3));
      const next: World = new Map(
        [...world].map(([key, witness]) => [key, { ...witness, decisions: [...witness.decisions] }]),
      );
      try {
        host.tx(() => {
          for (let count = 1 + rand(2); count > 0; count--) seen.add(step(host, book, rand, next, clock.now()));
          if (rand(5) === 0) throw new Undo();
        });
        world = next;
      } catch (error) {
        if (!(error instanceof Undo)) throw error;
      }
      check(book, world, run);
    }
  }
  // Otherwise the run above says little.
  const outcomes = [
    "asked",
    "decided",
    "late",
    "mismatch",
    "unknown",
    "expired",
    "started",
    "refused",
    "settled",
    "was settled",
  ];
  expect([...seen].sort()).toEqual([...outcomes].sort());
});

/** One event. @returns what came of it. */
function step(db: Sql, book: CallBook, rand: Random, world: World, now: number): string {
  const toolCallId = IDS[rand(IDS.length)] ?? "";
  const messageId = MESSAGES[rand(MESSAGES.length)] ?? "";
  const digest = DIGESTS[rand(4) === 0 ? 1 : 0] ?? "";
  const key = `${messageId}/${toolCallId}`;
  const witness = world.get(key);
  const replay = rand(2) === 0 ? "safe" : "never";
  const intent = { messageId, toolCallId, turnId: "t", step: 0, tool: "x", input: { digest }, digest, replay } as const;
  const fresh = { asked: 0, decisions: [], starts: 0, safe: replay === "safe", settles: 0, digest };
  switch (rand(5)) {
    case 0: {
      book.ask({ ...intent, expiresAt: rand(2) === 0 ? null : now + rand(20) });
      if (witness === undefined) world.set(key, { ...fresh, asked: 1 });
      return "asked";
    }
    case 1: {
      const approved = rand(2) === 0;
      const decided = book.decide(toolCallId, { approved, now, ...(rand(2) === 0 && { digest }) });
      if (decided.kind === "decided") {
        world.get(`${decided.row.messageId}/${toolCallId}`)?.decisions.push(approved ? "approved" : "denied");
      }
      return decided.kind;
    }
    case 2: {
      for (const row of overdueQuestions(db, now)) {
        if (book.expire(row, now)) world.get(`${row.messageId}/${row.toolCallId}`)?.decisions.push("expired");
      }
      return "expired";
    }
    case 3: {
      try {
        book.start(intent);
      } catch {
        return "refused";
      }
      world.set(key, { ...(witness ?? fresh), starts: (witness?.starts ?? 0) + 1 });
      // The arguments that run are those that were approved, or that ran before.
      return digest === (witness?.digest ?? digest) ? "started" : "started with other arguments";
    }
    default: {
      const settled = book.settle(messageId, toolCallId, now);
      if (settled && witness !== undefined) witness.settles++;
      return settled ? "settled" : "was settled";
    }
  }
}

function check(book: CallBook, world: World, run: number): void {
  const rows = new Map(MESSAGES.flatMap((id) => book.of(id)).map((row) => [`${row.messageId}/${row.toolCallId}`, row]));
  expect([...rows.keys()].sort()).toEqual([...world.keys()].sort());
  for (const [key, witness] of world) {
    const row = rows.get(key);
    if (row === undefined) throw new Error(`run ${run}: ${key} is missing`);
    expect({ run, key, fault: faultOf(row, witness) }).toEqual({ run, key, fault: undefined });
  }
  expect(book.pendingApprovals()).toHaveLength([...rows.values()].filter(({ status }) => status === "asked").length);
  expect(book.approvals(100)).toHaveLength([...world.values()].filter(({ decisions }) => decisions.length > 0).length);
}

function faultOf(row: CallRow, { asked, decisions, starts, safe, settles, digest }: Witness): string | undefined {
  const [decision] = decisions;
  if (decisions.length > 1) return "decided twice";
  if (settles > 1) return "settled twice";
  if (row.attempts !== starts) return "a start was not counted";
  if (starts > 1 && !safe) return "ran again though it must not";
  if (starts > 0 && asked === 1 && decision !== "approved") return "ran without approval";
  if (row.digest !== digest) return "its arguments changed";
  const denied = decision === "denied" || decision === "expired";
  const status = denied ? decision : settles > 0 ? "settled" : starts > 0 ? "started" : (decision ?? "asked");
  if (row.status !== status) return `is ${row.status}, not ${status}`;
  if ((row.settledAt !== null) !== settles > 0 || (row.decidedAt !== null) !== decisions.length > 0)
    return "wrong times";
  const move = mayRun(row, digest);
  const runs = move === "run" || move === "run-again";
  if (runs && (denied || settles > 0 || (starts > 0 && !safe) || (starts === 0 && decision !== "approved"))) {
    return "may run though it must not";
  }
  return undefined;
}
