import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PerdureError } from "../../error.ts";

/** The schema, when it is one that can check values: a JSON Schema is not. */
function standardSchema(schema: unknown): StandardSchemaV1 | undefined {
  // Some libraries make functions of their schemas.
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return undefined;
  const standard = (schema as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function" ? (schema as StandardSchemaV1) : undefined;
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
  throw new PerdureError("bad_input", `${what}: ${checked.issues.map(issueText).join("; ")}.`);
}

function issueText({ message, path }: StandardSchemaV1.Issue): string {
  const place = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  return place === "" ? message : `${place}: ${message}`;
}

/**
 * The same schema, to the model and as a check, but it hands on what it was given: a row keeps what the model said,
 * and whoever executes it lets the schema change it once. Other schemas are given back as they are.
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
