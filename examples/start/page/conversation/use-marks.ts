import type { UseAgentChat } from "perdure/react";
import { useCallback, useMemo, useState } from "react";
import type { Summaries } from "../context/summary-line.tsx";
import type { Marks } from "../message/marks.ts";
import type { Copies } from "./use-copies.ts";
import type { Reveal } from "./use-reveal.ts";

export interface MarkState {
  readonly marks: Marks;
  readonly summaries: Summaries;
  /** Why the last thing that was asked for was not done. */
  readonly problem: string | undefined;
  readonly clearProblem: () => void;
}

/** Versions, pins and summaries of a conversation. */
export function useMarks(
  chat: UseAgentChat,
  isBusy: boolean,
  reveal: Reveal["reveal"],
  show: Copies["choose"],
): MarkState {
  const { branches, pins, compactions, messages, hasOlder } = chat;
  const { listBranches, switchBranch, pin, unpin, undoCompaction, fork } = chat;
  const [problem, setProblem] = useState<string>();
  const attempt = useCallback((work: Promise<unknown>) => {
    setProblem(undefined);
    work.catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  const marks = useMemo<Marks>(() => {
    const step = async (messageId: string, by: -1 | 1) => {
      const versions = await listBranches(messageId);
      const next = versions[versions.findIndex((version) => version.messageId === messageId) + by];
      if (next === undefined) return;
      await switchBranch(next.messageId);
      const focus = by < 0 ? '[data-testid="previous-branch"]' : '[data-testid="next-branch"]';
      reveal({ id: next.messageId, focus });
    };
    return {
      branches,
      pins: new Set(pins),
      step: (messageId, by) => attempt(step(messageId, by)),
      copy: (messageId) => attempt(fork({ at: messageId }).then(({ id }) => show(id))),
      setPinned: (messageId, pinned) => attempt(pinned ? pin(messageId) : unpin(messageId)),
    };
  }, [branches, pins, listBranches, switchBranch, pin, unpin, fork, show, reveal, attempt]);
  const active = compactions.findLast((one) => one.active);
  const covered = hasOlder || active === undefined ? undefined : coveredBy(messages, active.at, marks.pins);
  const summaries = useMemo<Summaries>(
    () => ({
      // The newest of one place.
      byMessage: new Map(compactions.map((one) => [one.at, one])),
      covered,
      undo: isBusy ? undefined : undoCompaction,
    }),
    [compactions, covered, isBusy, undoCompaction],
  );
  return { marks, summaries, problem, clearProblem: useCallback(() => setProblem(undefined), []) };
}

function coveredBy(messages: UseAgentChat["messages"], last: string, pins: ReadonlySet<string>): number {
  const end = messages.findIndex(({ id }) => id === last) + 1;
  return messages.slice(0, end).filter(({ id }) => !pins.has(id)).length;
}
