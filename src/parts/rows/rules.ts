import type { StandardSchemaV1 } from "@standard-schema/spec";
import { errorText, PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";
import { type JsonObject, writeJson } from "../../wire/json.ts";
import {
  MAX_COLLECTION_NAME,
  MAX_ROW_KEY_LENGTH,
  type RowChange,
  type RowCondition,
  type RowError,
  rowNameProblem,
  type RowProducer,
} from "../../wire/row-frames.ts";
import { yesOrNo } from "../../base/yes-or-no.ts";
import type { Connection } from "../../door/connection.ts";

/** The longest row where the rules say nothing else. */
const DEFAULT_MAX_ROW_BYTES = 1024 * 1024;
/** Under this name stand the rules for every collection that is not declared. */
export const ANY_COLLECTION = "*";

/** Frames are cleaned of keys of this name, so nobody could follow such a collection. */
const UNSENDABLE = "__proto__";

/**
 * What an agent says of a collection. Asked in the middle of a write, so nothing may be asynchronous. A refusal is told; a rule
 * that returns no boolean refuses everything, and the app hears of it.
 */
export interface CollectionRules {
  /** What every row must be, the agent's own too; its output is stored. A bad row refuses the whole write, with its message. */
  readonly schema?: StandardSchemaV1;
  /** The key of a row: a change under another key is refused. Default: rows of server code are stored under their `id`. */
  readonly getKey?: (row: never) => string;
  /** Whether a client may follow: asked on subscribing and before it is told a change. A no or a throw ends it. Default: yes. */
  readonly readable?: (connection: Connection) => boolean;
  /**
   * Whether a client may make these changes, as this producer if it says so: a later epoch shuts out earlier writers of that id.
   * False or a throw refuses the whole write; the message of an `Error` or `PerdureError` is told, that of a bug (a `TypeError`)
   * is not. Read-only connections are never asked. Default: yes.
   */
  readonly writable?: (
    connection: Connection,
    changes: readonly RowChange[],
    producer: RowProducer | undefined,
  ) => boolean;
  /**
   * The field that says who wrote a row, such as `actorId` of approvals. A client's row must have its identity's id there, and
   * clients cannot change or delete others' rows. Unknown clients write nothing. Server code may write in any name.
   */
  readonly author?: string;
  /** The longest row as JSON, in bytes. Default 1 MiB. */
  readonly maxRowBytes?: number;
}

/** The declared collections of an agent, by name. */
export type Collections = Readonly<Record<string, CollectionRules>>;

/** A change that keeps all rules, with its row as JSON; null for a delete. */
export interface CheckedChange {
  readonly change: RowChange;
  readonly json: string | null;
}

/** The rules of a collection. @throws PerdureError `not_found` when nothing is declared for the name. */
export function rulesFor(collections: Collections, name: string): CollectionRules {
  const isName = name !== ANY_COLLECTION && name !== UNSENDABLE;
  const key = Object.hasOwn(collections, name) ? name : ANY_COLLECTION;
  const rules = isName && Object.hasOwn(collections, key) ? collections[key] : undefined;
  if (rules !== undefined) return rules;
  throw new PerdureError(
    "not_found",
    `This agent has no collection "${name}". Declare it: getCollections() { return { ${JSON.stringify(name)}: {} }; }`,
  );
}

/** @throws PerdureError `not_found`, or `not_allowed` when this client may not read the collection. */
export function requireReadable(collections: Collections, name: string, connection: Connection): void {
  const { readable } = rulesFor(collections, name);
  if (readable === undefined) return;
  if (!permits(() => readable(connection), "readable", name)) {
    throw new PerdureError("not_allowed", `The collection "${name}" may not be read here.`);
  }
}

/** @param read the row as it is now, as JSON, or null @throws PerdureError `not_allowed` when this client may not */
export function requireWritable(
  collections: Collections,
  changes: readonly CheckedChange[],
  connection: Connection,
  producer: RowProducer | undefined,
  read: (table: string, key: string) => string | null,
): void {
  const byName = new Map<string, RowChange[]>();
  for (const { change } of changes) {
    const list = byName.get(change.table);
    if (list === undefined) byName.set(change.table, [change]);
    else list.push(change);
  }
  for (const [name, list] of byName) {
    const { author, writable } = rulesFor(collections, name);
    if (author !== undefined) for (const change of list) requireAuthor(author, change, connection, read);
    if (writable !== undefined && !permits(() => writable(connection, list, producer), "writable", name)) {
      throw new PerdureError("not_allowed", `This change of the collection "${name}" is not allowed here.`);
    }
  }
}

function requireAuthor(
  field: string,
  { table, key, value }: RowChange,
  { identity }: Connection,
  read: (table: string, key: string) => string | null,
): void {
  const json = read(table, key);
  const rows = [value, json === null ? undefined : (JSON.parse(json) as JsonObject)];
  for (const row of rows) {
    if (row === undefined || (identity !== undefined && row[field] === identity.id)) continue;
    throw new PerdureError(
      "not_allowed",
      `The row "${key}" of "${table}" is written by whom its \`${field}\` names, and that is not who writes it here.`,
    );
  }
}

function permits(ask: () => unknown, rule: string, name: string): boolean {
  let answer: unknown;
  try {
    answer = ask();
  } catch (thrown) {
    if (PerdureError.is(thrown)) throw thrown;
    // Who writes is told why not in the rule's own words; who reads could learn from them what is there.
    if (rule === "readable" || !isSaid(thrown)) throw ruleFailed(`${rule}() of the collection "${name}"`, thrown);
    throw new PerdureError("not_allowed", errorText(thrown), { cause: thrown });
  }
  return yesOrNo(answer, `${rule}() of the collection "${name}"`);
}

/** Whether somebody wrote this error to say no. What the language itself throws is a mistake in the rule. */
function isSaid(thrown: unknown): boolean {
  return thrown instanceof Error && Object.getPrototypeOf(thrown) === Error.prototype;
}

/** What clients are told of a rule that threw: nothing of what it threw. */
function ruleFailed(what: string, cause: unknown): PerdureError {
  return new PerdureError("bad_config", `${what} failed. The agent's log says why.`, { cause });
}

/** @param isRead its row came from a frame: it is JSON already @throws PerdureError `not_found`, `bad_input`, `too_large` */
export function checkChange(collections: Collections, change: RowChange, isRead = false): CheckedChange {
  const { table, key, operation } = change;
  const rules = rulesFor(collections, requireName(table, MAX_COLLECTION_NAME, "The name of a collection"));
  requireName(key, MAX_ROW_KEY_LENGTH, `The key of a row of "${table}"`);
  if (operation === "delete") return { change: { table, key, operation }, json: null };
  const row = `The row "${key}" of "${table}"`;
  const value = rules.schema === undefined ? change.value : parseRow(rules.schema, change.value, row);
  if (!isRecord(value)) throw new PerdureError("bad_input", `${row} is no object.`);
  const json = writeJson(value, row);
  const max = rules.maxRowBytes ?? DEFAULT_MAX_ROW_BYTES;
  if (isLonger(json, max)) throw new PerdureError("too_large", `${row} is longer than ${max} bytes.`);
  // As everybody will read it: without what JSON leaves out, and safe from whoever keeps the object.
  const stored = isRead && rules.schema === undefined ? value : (JSON.parse(json) as JsonObject);
  if (rules.getKey !== undefined && keyOf(rules, stored) !== key) {
    throw new PerdureError("bad_input", `${row} has another key in it.`);
  }
  return { change: { table, key, operation, value: stored }, json };
}

/** The key of a row that came without one. @throws PerdureError `bad_input` */
export function keyOf(rules: CollectionRules, row: object): string {
  // The app says which rows its collection holds; the schema has checked this one.
  const key: unknown = rules.getKey === undefined ? (row as { id?: unknown }).id : rules.getKey(row as never);
  return requireName(key, MAX_ROW_KEY_LENGTH, "The key of a row (its `id`, unless getKey says otherwise)");
}

/** @throws PerdureError `bad_input`, `not_found` */
export function checkCondition(collections: Collections, { table, key, version }: RowCondition): void {
  rulesFor(collections, table);
  requireName(key, MAX_ROW_KEY_LENGTH, `The key of a condition on "${table}"`);
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new PerdureError("bad_input", `A condition on "${table}" asks for a version that is not 0, 1, 2, …`);
  }
}

function requireName(name: unknown, maxLength: number, what: string): string {
  const problem = rowNameProblem(name, maxLength);
  if (problem !== undefined) throw new PerdureError("bad_input", `${what} ${problem}.`);
  return name as string;
}

function parseRow(schema: StandardSchemaV1, value: unknown, row: string): unknown {
  let result: unknown;
  try {
    result = schema["~standard"].validate(value);
  } catch (thrown) {
    if (!isSaid(thrown)) throw ruleFailed(`The schema of ${row}`, thrown);
    throw new PerdureError("bad_input", `${row} was refused: ${errorText(thrown)}`, { cause: thrown });
  }
  if (result instanceof Promise) throw tooLate(result, `The schema of ${row}`);
  const { issues, value: output } = result as { issues?: readonly StandardSchemaV1.Issue[]; value?: unknown };
  if (issues === undefined) return output;
  throw new PerdureError("bad_input", `${row} was refused: ${issues.map(issueText).join("; ")}`);
}

function issueText({ path = [], message }: StandardSchemaV1.Issue): string {
  const at = path.map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  return at === "" ? message : `${at}: ${message}`;
}

function tooLate(promise: Promise<unknown>, what: string): PerdureError {
  // It may reject, which nobody waits for.
  promise.catch(() => undefined);
  return new PerdureError(
    "bad_config",
    `${what} returned a promise, which is too late to refuse a write. Make it synchronous.`,
  );
}

function isLonger(text: string, maxBytes: number): boolean {
  // Three bytes are the most that one UTF-16 unit takes.
  if (text.length * 3 <= maxBytes) return false;
  return text.length > maxBytes || new TextEncoder().encode(text).length > maxBytes;
}

/** What a client is told of a failure. What nobody wrote for it stays here. */
export function rowError(thrown: unknown): RowError {
  if (PerdureError.is(thrown) && !INTERNAL.has(thrown.code)) return { code: thrown.code, message: thrown.message };
  return {
    code: PerdureError.is(thrown) ? thrown.code : "call_failed",
    message: "This failed on the agent's side. Its log says why.",
  };
}

/** Errors that speak of how the agent keeps its rows. */
const INTERNAL: ReadonlySet<string> = new Set(["sql_failed", "database_corrupt"]);

/** Whether the app should hear of it, although a client caused it. */
export function isMistake(thrown: unknown): boolean {
  return !PerdureError.is(thrown) || MISTAKES.has(thrown.code);
}

const MISTAKES: ReadonlySet<string> = new Set(["bad_config", "disk_full", ...INTERNAL]);
