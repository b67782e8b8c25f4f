import { errorText, PerdureError } from "../../base/error.ts";
import type { RowWrite } from "../../wire/row-frames.ts";

const OPERATIONS: ReadonlySet<unknown> = new Set(["insert", "update", "upsert", "delete"]);

/**
 * Refuses a write that no log could apply, before anything is sent.
 * @throws PerdureError `bad_input`, with what is wrong.
 */
export function requireWrite(write: RowWrite): void {
  if (write.changes.length === 0) throw bad("it changes nothing");
  for (const { table, key, operation, value } of write.changes) {
    if (typeof table !== "string" || table === "") throw bad("a change names no collection");
    if (typeof key !== "string" || key === "") {
      throw bad(`a change of "${table}" has no key; keys of durable collections are strings that are not empty`);
    }
    if (!OPERATIONS.has(operation)) throw bad(`"${operation}" of the row "${key}" of "${table}" is no operation`);
    if (operation === "delete") continue;
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      throw bad(`the row "${key}" of "${table}" is no object`);
    }
  }
  for (const { table, key, version } of write.when ?? []) {
    if (typeof table !== "string" || typeof key !== "string") throw bad("a condition names no row");
    if (!Number.isSafeInteger(version) || version < 0) {
      throw bad(`the condition on "${key}" of "${table}" asks for version ${version}; versions are 0, 1, 2, …`);
    }
  }
  if (write.txid !== undefined && (typeof write.txid !== "string" || write.txid === ""))
    throw bad("its txid is no text");
  const { producer } = write;
  if (producer !== undefined && (producer.id === "" || !Number.isSafeInteger(producer.epoch) || producer.epoch < 0)) {
    throw bad("its producer needs an id, and an epoch that is 0, 1, 2, …");
  }
}

/** A write, or the frame that it is sent in, as JSON. @throws PerdureError `bad_input` when a row cannot be JSON. */
export function asJson(write: object): string {
  try {
    return JSON.stringify(write);
  } catch (cause) {
    const { changes = [] } = write as Partial<RowWrite>;
    const { table, key } = changes.find(({ value }) => !isJson(value)) ?? {};
    const which = table === undefined ? "it" : `the row "${key}" of "${table}"`;
    throw bad(`${which} is nothing that JSON can hold: ${errorText(cause)}`, { cause });
  }
}

function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

function bad(what: string, options?: { cause: unknown }): PerdureError {
  return new PerdureError("bad_input", `This write cannot be applied: ${what}.`, options);
}
