import type { TurnRow } from "../../src/store/turn.ts";

let seq = 0;

/** A turn that was just accepted, but for what is given. Each has a number and an id of its own. */
export function turnRow(fields: Partial<TurnRow> = {}): TurnRow {
  seq++;
  return {
    seq,
    id: `t${seq}`,
    status: "accepted",
    trigger: "submit",
    continuation: 0,
    messageIds: "[]",
    answerId: null,
    baseParts: 0,
    body: null,
    clientTools: null,
    notBefore: 0,
    attempts: 0,
    cancelled: 0,
    error: null,
    createdAt: 0,
    startedAt: null,
    steer: 0,
    receipt: null,
    position: null,
    session: "main",
    identity: null,
    progressAt: null,
    stuck: 0,
    stash: null,
    cause: null,
    ...fields,
  };
}
