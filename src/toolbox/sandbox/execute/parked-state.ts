import { PerdureError } from "../../../base/error.ts";
import { isRecord } from "../../../message/json.ts";
import type { NestedQuestion } from "../../../tool/park.ts";
import type { LogLine, OpenCall } from "../sandbox.ts";

/** What `execute` leaves when a person has to be asked in the middle of its code. */
export interface ParkedState {
  /** The call that the question is about. */
  readonly asked: OpenCall;
  /** Why other parked calls have to be asked about, by their number. */
  readonly questions: Readonly<Record<string, NestedQuestion>>;
  readonly logs: readonly LogLine[];
  readonly snapshot: Uint8Array;
}

const VERSION = 1;
const LENGTH_BYTES = 4;

/** The state as bytes: the length of a JSON header, the header, the snapshot. */
export function writeParkedState({ snapshot, ...head }: ParkedState): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify({ version: VERSION, ...head }));
  const bytes = new Uint8Array(LENGTH_BYTES + json.length + snapshot.length);
  new DataView(bytes.buffer).setUint32(0, json.length);
  bytes.set(json, LENGTH_BYTES);
  bytes.set(snapshot, LENGTH_BYTES + json.length);
  return bytes;
}

/** @throws PerdureError `bad_input` for what {@link writeParkedState} has not written */
export function readParkedState(bytes: Uint8Array): ParkedState {
  try {
    const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
    const head: unknown = JSON.parse(text);
    if (!isRecord(head) || head.version !== VERSION || !isRecord(head.asked)) throw new Error("another shape");
    const { asked, questions, logs } = head as unknown as Omit<ParkedState, "snapshot">;
    return { asked, questions, logs, snapshot: bytes.slice(LENGTH_BYTES + length) };
  } catch (thrown) {
    throw new PerdureError("bad_input", "What the call left when it was parked cannot be read. Run the code again.", {
      cause: thrown,
    });
  }
}
