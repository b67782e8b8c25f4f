import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import {
  type CompactionEnd,
  compactionPlaces,
  compactionsOfTurn,
  deleteCompaction,
  deleteStrayCompactions,
  doneAt,
  dropCompaction,
  failCompaction,
  failOpenCompactions,
  finishCompaction,
  forgetFailedCompactions,
  listCompactions,
  type NewCompaction,
  readCompaction,
  readCompactionAt,
  redoTruncation,
  setCompactionPins,
  startCompaction,
  undoCompaction,
} from "./compaction.ts";
import { deleteMessage, insertMessage } from "./message.ts";

const begun = (id: string, more: Partial<NewCompaction> = {}): NewCompaction => ({
  ...{ id, session: "main", at: 1, parts: null, kind: "summary", trigger: "manual", turn: null, step: null },
  ...{ call: null, prior: null, tokensBefore: 100, model: "m", focus: "f", createdAt: 5, ...more },
});
const end: CompactionEnd = {
  ...{ kind: "truncate", at: 2, parts: 3, tokensAfter: 10, pins: "[1]", calls: "[]", files: "[]" },
  ...{ summary: "s", carried: "c" },
};

test("a compaction from its beginning to its end, which is the first one", async () => {
  const { host } = await probeHost();
  const seq = startCompaction(host, begun("a"));
  expect(readCompaction(host, "a")).toMatchObject({ seq, status: "started", focus: "f", endedAt: null, summary: null });
  expect(doneAt(host, [1, 2])).toEqual([]);
  finishCompaction(host, seq, end, 9);
  failCompaction(host, seq, { error: "late" }, 10);
  const row = readCompactionAt(host, seq);
  expect(row).toMatchObject({ ...end, status: "done", error: null, endedAt: 9 });
  expect(doneAt(host, [1, 2, 3])).toEqual([row]);
  setCompactionPins(host, seq, [4, 5]);
  expect(readCompaction(host, "a")?.pins).toBe("[4,5]");
  undoCompaction(host, seq);
  expect(doneAt(host, [2])).toEqual([]);
  expect(readCompaction(host, "a")?.status).toBe("undone");
  undoCompaction(host, startCompaction(host, begun("b")));
  expect(readCompaction(host, "b")?.status).toBe("started");
});

test("what was left out counts again, unless it says nothing any more", async () => {
  const { host } = await probeHost();
  const seq = startCompaction(host, begun("a"));
  finishCompaction(host, seq, end, 9);
  undoCompaction(host, seq);
  redoTruncation(host, seq);
  expect(readCompaction(host, "a")?.status).toBe("done");
  undoCompaction(host, seq);
  dropCompaction(host, seq, "its message was changed");
  redoTruncation(host, seq);
  expect(readCompaction(host, "a")).toMatchObject({ status: "undone", summary: null });
});

test("what came to nothing says why, and is not finished any more", async () => {
  const { host } = await probeHost();
  const seq = startCompaction(host, begun("a"));
  failCompaction(host, seq, { error: "no", summary: "s", tokensAfter: 99 }, 9);
  finishCompaction(host, seq, end, 10);
  expect(readCompaction(host, "a")).toMatchObject({ status: "failed", error: "no", summary: "s", tokensAfter: 99 });
  startCompaction(host, begun("b"));
  expect(failOpenCompactions(host, "cut", 11)).toBe(1);
  expect(failOpenCompactions(host, "cut", 12)).toBe(0);
  expect(readCompaction(host, "b")).toMatchObject({ status: "failed", error: "cut", endedAt: 11 });
});

test("lists, by session and by turn", async () => {
  const { host } = await probeHost();
  for (const id of ["a", "b", "c"]) startCompaction(host, begun(id, { turn: 7, session: id === "b" ? "x" : "main" }));
  const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  expect(ids(listCompactions(host, {}, 2))).toEqual(["c", "b"]);
  expect(ids(listCompactions(host, { session: "main" }, 9))).toEqual(["c", "a"]);
  expect(ids(listCompactions(host, { session: "main", before: 3 }, 9))).toEqual(["a"]);
  expect(ids(listCompactions(host, { before: 2 }, 9))).toEqual(["a"]);
  expect(ids(compactionsOfTurn(host, 7))).toEqual(["a", "b", "c"]);
  expect(compactionsOfTurn(host, 8)).toEqual([]);
});

test("those whose message is gone go too", async () => {
  const { host } = await probeHost();
  const row = { session: "main", parent: null, role: "user", body: "{}", createdAt: 0 };
  const seqs = ["u1", "u2"].map((id) => insertMessage(host, { ...row, id }));
  for (const at of seqs) startCompaction(host, begun(`k${at}`, { at }));
  expect(deleteStrayCompactions(host)).toBe(0);
  deleteMessage(host, seqs[0] ?? 0, null);
  expect(deleteStrayCompactions(host)).toBe(1);
  expect(compactionPlaces(host)).toEqual([{ seq: 2, at: seqs[1], pins: "[]" }]);
  deleteCompaction(host, 2);
  expect(compactionPlaces(host)).toEqual([]);
});

test("those that failed are forgotten after a while, and no others", async () => {
  const { host } = await probeHost();
  for (let i = 0; i < 6; i++) {
    const seq = startCompaction(host, begun(`k${i}`));
    if (i % 2 === 0) failCompaction(host, seq, { error: "no" }, 9);
    else finishCompaction(host, seq, end, 9);
  }
  forgetFailedCompactions(host, 3);
  expect(compactionPlaces(host).map(({ seq }) => seq)).toEqual([2, 4, 5, 6]);
});
