import { expect, test } from "vitest";
import type { ToolCallStatus } from "../store/tool-call.ts";
import { type CallMove, mayRun } from "./call-move.ts";

/** Every state, replay policy and kind of arguments. */
test.each<[ToolCallStatus, "never" | "safe", "same" | "other", CallMove]>([
  ["asked", "never", "same", "waiting"],
  ["asked", "never", "other", "waiting"],
  ["asked", "safe", "same", "waiting"],
  ["asked", "safe", "other", "waiting"],
  ["approved", "never", "same", "run"],
  ["approved", "never", "other", "changed"],
  ["approved", "safe", "same", "run"],
  ["approved", "safe", "other", "changed"],
  ["denied", "never", "same", "denied"],
  ["denied", "never", "other", "denied"],
  ["denied", "safe", "same", "denied"],
  ["denied", "safe", "other", "denied"],
  ["expired", "never", "same", "expired"],
  ["expired", "never", "other", "expired"],
  ["expired", "safe", "same", "expired"],
  ["expired", "safe", "other", "expired"],
  ["started", "never", "same", "interrupted"],
  ["started", "never", "other", "interrupted"],
  ["started", "safe", "same", "run-again"],
  ["started", "safe", "other", "changed"],
  ["returned", "never", "same", "returned"],
  ["returned", "never", "other", "returned"],
  ["returned", "safe", "same", "returned"],
  ["returned", "safe", "other", "returned"],
  ["settled", "never", "same", "settled"],
  ["settled", "never", "other", "settled"],
  ["settled", "safe", "same", "settled"],
  ["settled", "safe", "other", "settled"],
])("%s, replay %s, %s arguments: %s", (status, replay, digest, move) => {
  expect(mayRun({ status, replay, digest: "same" }, digest)).toBe(move);
});

test("what was approved while another engine ran the turns is bound to no digest", () => {
  expect(mayRun({ status: "approved", replay: "never", digest: "" }, "any")).toBe("run");
});
