import { expect, test } from "vitest";
import type { TurnStatus } from "../../store/turn.ts";
import { nextRunMove, type RunMove } from "./child-runs.ts";

const wait: RunMove = { kind: "wait" };
const aborted = (error: string): RunMove => ({ kind: "end", status: "aborted", error });

const table: [status: TurnStatus | undefined, asks: boolean, error: string | null, move: RunMove][] = [
  ["held", false, null, wait],
  ["accepted", false, null, wait],
  ["running", false, null, wait],
  ["running", true, null, wait],
  ["completed", false, null, { kind: "end", status: "completed" }],
  ["completed", true, null, wait],
  ["error", false, "No ink.", { kind: "end", status: "error", error: "No ink." }],
  ["error", true, "No ink.", { kind: "end", status: "error", error: "No ink." }],
  ["error", false, null, { kind: "end", status: "error", error: "The child's turn failed." }],
  ["aborted", false, null, aborted("The child's turn was stopped.")],
  ["aborted", true, null, aborted("The child's turn was stopped.")],
  ["skipped", false, null, aborted("The child skipped the message.")],
  [undefined, false, null, aborted("The child's conversation was cleared.")],
];

for (const [status, asks, error, move] of table) {
  test(`a last turn that is ${status ?? "forgotten"}${asks ? " and asks" : ""}${error === null ? "" : " with an error"}`, () => {
    expect(nextRunMove({ status, error, asks })).toEqual(move);
  });
}
