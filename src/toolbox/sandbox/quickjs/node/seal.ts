import { createHmac, timingSafeEqual } from "node:crypto";
import { PerdureError } from "../../../../base/error.ts";
import type { Limits, OpenCall } from "../../sandbox.ts";
import type { Image, Used } from "../message.ts";

/** What a snapshot is made of: the guest's image, and all that the host has to know to go on with it. */
export interface Sealed {
  readonly engine: string;
  readonly limits: Limits;
  readonly used: Used;
  readonly nextCall: number;
  readonly parked: readonly OpenCall[];
  readonly image: Image;
}

const MAGIC = Buffer.from("PQJS");
const VERSION = 1;
const MAC_BYTES = 32;
const MAC_AT = MAGIC.length + 1;
const LENGTH_AT = MAC_AT + MAC_BYTES;
const HEAD_AT = LENGTH_AT + 4;

/**
 * Layout: magic, version, MAC, header length, header (JSON), image. The MAC covers all but itself: the engine would run a changed
 * image.
 */
export function seal(key: Uint8Array, sealed: Sealed): Uint8Array {
  const { image, ...rest } = sealed;
  const head = Buffer.from(JSON.stringify({ ...rest, meta: image.meta }));
  const whole = Buffer.alloc(HEAD_AT + head.length + image.bytes.length);
  MAGIC.copy(whole);
  whole[MAGIC.length] = VERSION;
  whole.writeUInt32LE(head.length, LENGTH_AT);
  head.copy(whole, HEAD_AT);
  whole.set(image.bytes, HEAD_AT + head.length);
  macOf(key, whole).copy(whole, MAC_AT);
  return new Uint8Array(whole.buffer, whole.byteOffset, whole.length);
}

/**
 * Opens a snapshot.
 * @throws PerdureError `bad_input` for bytes that are no snapshot, were changed, or come from another key or engine
 */
export function unseal(key: Uint8Array, engine: string, snapshot: Uint8Array): Sealed {
  const whole = Buffer.from(snapshot.buffer, snapshot.byteOffset, snapshot.byteLength);
  if (whole.length < HEAD_AT || !whole.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw bad("These bytes are no snapshot of this sandbox.");
  }
  if (whole[MAGIC.length] !== VERSION) {
    throw bad(
      `The snapshot has format ${whole[MAGIC.length]}; this version reads format ${VERSION}. Run the code again.`,
    );
  }
  if (!timingSafeEqual(macOf(key, whole), whole.subarray(MAC_AT, LENGTH_AT))) {
    throw bad("The snapshot was damaged or changed, or sealed with another snapshotKey. Run the code again.");
  }
  const end = HEAD_AT + whole.readUInt32LE(LENGTH_AT);
  const { meta, ...head } = JSON.parse(whole.toString("utf8", HEAD_AT, end)) as Omit<Sealed, "image"> & {
    meta: string;
  };
  if (head.engine !== engine) {
    throw bad("The snapshot was made by another build of the engine. Run the code again.");
  }
  return { ...head, image: { bytes: new Uint8Array(whole.subarray(end)), meta, packed: true } };
}

function macOf(key: Uint8Array, whole: Buffer): Buffer {
  return createHmac("sha256", key).update(whole.subarray(0, MAC_AT)).update(whole.subarray(LENGTH_AT)).digest();
}

function bad(message: string): PerdureError {
  return new PerdureError("bad_input", message);
}
