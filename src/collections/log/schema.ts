import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PerdureError } from "../../base/error.ts";
import { sameJson } from "../../base/json.ts";

/** The schema, when it is one that can check values: a JSON Schema is not. */
export function standardSchema(schema: unknown): StandardSchemaV1 | undefined {
  // Some libraries make functions of their schemas.
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return undefined;
  const standard = (schema as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function" ? (schema as StandardSchemaV1) : undefined;
}

/** All that a schema has found, each with its field. */
function issuesText(issues: readonly StandardSchemaV1.Issue[]): string {
  const texts = issues.map((issue) => {
    const place = pathOf(issue).join(".");
    return place === "" ? issue.message : `${place}: ${issue.message}`;
  });
  return texts.join("; ");
}

function pathOf({ path }: StandardSchemaV1.Issue): string[] {
  return (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
}

/** Fields that functions here write and read themselves. A schema may judge them, but dropping unknown fields keeps them. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...["generationId", "parentGenerationId", "attempt", "attempts", "runner", "fence"],
  ...["result", "error", "progress", "needsApproval", "isAsync", "toolCallId", "toolCalls"],
  ...["isFinal", "processed", "requestId", "inReplyTo", "callers", "resumeFromToolIndex"],
]);

/** Which row of which collection a schema is asked about; `key` may throw. */
interface RowPlace {
  readonly table: string;
  key(): string;
}

/**
 * A row as its collection's schema makes it, as `collection.insert` and `update` do: all of a new row; with `before`, only the
 * fields that differ.
 * @throws PerdureError `bad_input` that names the row and each field; `bad_config` when the schema is asynchronous.
 */
export function rowBySchema(
  schema: unknown,
  place: RowPlace,
  row: object,
  before?: object,
  ownFields: ReadonlySet<string> = OWN_FIELDS,
): object {
  const standard = standardSchema(schema);
  if (standard === undefined) return row;
  const given = row as Record<string, unknown>;
  const isChanged = (field: string) =>
    before === undefined || !sameJson((before as Record<string, unknown>)[field], given[field]);
  const checked = standard["~standard"].validate(row);
  if (checked instanceof Promise) {
    const text = `The schema of "${place.table}" answers with a promise: schemas of collections must be synchronous.`;
    throw new PerdureError("bad_config", text);
  }
  // A field that is left as it was has been judged when it was written, perhaps before a transform of the schema.
  const issues = checked.issues?.filter(
    ({ path = [] }) => path.length === 0 || isChanged(pathOf({ message: "", path })[0]!),
  );
  if (issues !== undefined && issues.length > 0) {
    throw new PerdureError(
      "bad_input",
      `The row ${keyText(place)} of "${place.table}" does not match the collection's schema: ${issuesText(issues)}.`,
    );
  }
  const made = (checked.issues === undefined ? checked.value : row) as Record<string, unknown>;
  const kept: Record<string, unknown> = before === undefined ? { ...made } : {};
  for (const [field, value] of Object.entries(given)) {
    if (!isChanged(field)) kept[field] = value;
    else if (Object.hasOwn(made, field)) kept[field] = made[field];
    else if (ownFields.has(field)) kept[field] = value;
  }
  return kept;
}

/** What TanStack DB throws for a row that a schema refuses, in the words used here; any other error as it is. */
export function namedIssues(error: unknown, place: RowPlace): unknown {
  const { name, issues } = (typeof error === "object" && error !== null ? error : {}) as {
    name?: unknown;
    issues?: readonly StandardSchemaV1.Issue[];
  };
  if (name !== "SchemaValidationError" || !Array.isArray(issues)) return error;
  const text = `The row ${keyText(place)} of "${place.table}" is not what the collection's schema says`;
  return new PerdureError("bad_input", `${text}: ${issuesText(issues)}.`, { cause: error });
}

const NO_KEY = "that has no key,";

function keyText(place: RowPlace): string {
  try {
    return JSON.stringify(place.key()) ?? NO_KEY;
  } catch {
    return NO_KEY;
  }
}

/**
 * What the schema makes of a value; the value itself when the schema cannot check.
 * @throws PerdureError `bad_input` with every issue.
 */
export async function checkValue(schema: unknown, value: unknown, what: string): Promise<unknown> {
  const standard = standardSchema(schema);
  if (standard === undefined) return value;
  const checked = await standard["~standard"].validate(value);
  if (checked.issues === undefined) return checked.value;
  throw new PerdureError("bad_input", `${what}: ${issuesText(checked.issues)}.`);
}

/**
 * The same schema as a check that passes its input through: a row keeps what the model said, and its executor transforms it once.
 * Other schemas are returned as they are.
 */
export function checkOnly(schema: unknown): unknown {
  const standard = standardSchema(schema);
  if (standard === undefined) return schema;
  const own = standard["~standard"];
  const kept = (result: StandardSchemaV1.Result<unknown>, value: unknown) =>
    result.issues === undefined ? { value } : result;
  const validate = (value: unknown) => {
    const result = own.validate(value);
    return result instanceof Promise ? result.then((late) => kept(late, value)) : kept(result, value);
  };
  return { "~standard": { ...own, validate } };
}

/** The same schema to the model, but every value passes it as it is. Other schemas are given back as they are. */
export function unchecked(schema: unknown): unknown {
  const standard = standardSchema(schema);
  if (standard === undefined) return schema;
  return { "~standard": { ...standard["~standard"], validate: (value: unknown) => ({ value }) } };
}
