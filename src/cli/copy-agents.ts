import type { CopyAbout } from "../admin/house.ts";
import { isRecord } from "../base/json.ts";
import { answered, type Call, NotHeld, toError } from "./call.ts";
import { Unreached } from "./target.ts";

/** An agent's rows as a host sends them. */
interface SentRows {
  readonly about: CopyAbout;
  /** To be read to the end. @throws Unreached when fewer come than were promised */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Asks for an agent's rows. @throws PerdureError `not_found` when there is no such agent any more */
export async function fetchRows(call: Call, id: string): Promise<SentRows> {
  const response = await answered(call, "GET", `agents/${encodeURIComponent(id)}/rows`);
  const pieces = piecesOf(response);
  let head = "";
  for (;;) {
    const { value, done } = await pieces.next();
    if (done === true) throw new Unreached("The host has gone away.");
    const end = value.indexOf(NEWLINE);
    const decoded = new TextDecoder("latin1").decode(end === -1 ? value : value.subarray(0, end));
    head += decoded;
    if (end === -1) continue;
    const about = JSON.parse(
      new TextDecoder().decode(Uint8Array.from(head, (letter) => letter.charCodeAt(0))),
    ) as unknown;
    if (isRecord(about) && isRecord(about["error"])) throw toError(about["error"], (await call.target()).isAtRest);
    const promised = about as CopyAbout & { readonly bytes: number };
    // They become names of files here, and whoever answers is somebody else.
    if (!Array.isArray(promised.blobs) || !promised.blobs.every((name) => FILE_NAME.test(String(name))))
      throw new NotHeld("What answers there names files otherwise than a host does. Nothing of it was written.");
    return { about: promised, bytes: allOf(pieces, value.subarray(end + 1), promised.bytes) };
  }
}

const NEWLINE = 10;
const FILE_NAME = /^[0-9a-f]{64}$/;

async function* allOf(rest: AsyncIterator<Uint8Array>, first: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  let got = first.byteLength;
  if (got > 0) yield first;
  for (;;) {
    const { value, done } = await rest.next();
    if (done === true) break;
    got += value.byteLength;
    yield value;
  }
  if (got !== size) throw new Unreached(`The host has gone away: ${got} of ${size} bytes came.`);
}

/** The bytes of an answer as they come. @throws Unreached when the host goes away */
export async function* piecesOf(response: Response): AsyncGenerator<Uint8Array, undefined> {
  try {
    for await (const piece of response.body ?? new ReadableStream<Uint8Array>()) yield piece as Uint8Array;
  } catch {
    throw new Unreached("The host has gone away.");
  }
}

/** The id that agents of a tree get when its top gets another name. @returns undefined for agents that are not of it */
export function renamed(id: string, from: string, to: string): string | undefined {
  if (id === from) return to;
  return id.startsWith(`${from}/`) ? to + id.slice(from.length) : undefined;
}
