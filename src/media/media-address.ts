import { mapMedia, withAddress } from "../message/media-ref.ts";
import { tryParseJson } from "../base/json.ts";
import { parseMessage } from "../message/validate.ts";
import type { AgentHost } from "../port.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { bodiesAfter } from "../store/erase.ts";
import { readMessageAt, updateMessage } from "../store/message.ts";
import { filesOf } from "./files.ts";

/** The address that all references of this agent's messages begin with. */
const CELL = "media-address";
/** Rows that are looked at before others have their turn. */
const SLICE_ROWS = 16;

/** Whether messages may refer to files by another address than this one: the host has another prefix than it had. */
export function isAddressOld(host: AgentHost, address: string): boolean {
  if (host.blank) return false;
  const known = readCell(host, CELL);
  // Versions before this one noted none, and stored what a client had connected to.
  return known !== address && (known !== undefined || filesOf(host).list().length > 0);
}

/** Notes the address that a message is about to refer to a file by, in the caller's transaction. */
export function noteAddress(host: AgentHost, address: string): void {
  if (readCell(host, CELL) !== address) writeCell(host, CELL, address);
}

/** Has all messages refer to their files by this address. @returns how many were changed. */
export async function readdress(host: AgentHost, address: string): Promise<number> {
  let changed = 0;
  for (let after = 0; ;) {
    const rows = bodiesAfter(host, after, SLICE_ROWS);
    for (const { seq, body } of rows) if (body.includes("/files/") && readdressRow(host, seq, address)) changed++;
    const last = rows.at(-1)?.seq;
    if (last === undefined) break;
    after = last;
    await host.breathe();
  }
  host.tx(() => noteAddress(host, address), "commit");
  return changed;
}

function readdressRow(host: AgentHost, seq: number, address: string): boolean {
  const row = readMessageAt(host, seq);
  const message = row && parseMessage(tryParseJson(row.body));
  if (row === undefined || message === undefined) return false;
  const files = filesOf(host);
  const moved = mapMedia(message, (text) => withAddress(text, address, (name) => files.info(name) !== undefined));
  if (moved === message) return false;
  host.tx(() => updateMessage(host, seq, row.role, JSON.stringify(moved)), "commit");
  return true;
}
