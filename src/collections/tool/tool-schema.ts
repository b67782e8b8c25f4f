import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PerdureError } from "../../base/error.ts";
import { issuesText, standardSchema } from "../row-schema.ts";

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
