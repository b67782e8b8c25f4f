import type { JSONSchema7, Schema } from "ai";

/** How copies of the AI SDK know each other's schemas. */
const SCHEMA = Symbol.for("vercel.ai.schema");

/** As `jsonSchema` of the AI SDK, which need not be loaded for it: tools are declared long before one is called. */
export function toSchema<T>(json: JSONSchema7, { validate }: Pick<Schema<T>, "validate"> = {}): Schema<T> {
  return { [SCHEMA]: true, _type: undefined, jsonSchema: json, validate } as unknown as Schema<T>;
}

/** The schema of a tool that takes an object with these fields and no others. @param required those that must be there */
export function objectInput<INPUT>(
  required: readonly string[],
  properties: Record<string, JSONSchema7>,
): Schema<INPUT> {
  const needs = required.length === 0 ? {} : { required: [...required] };
  return toSchema<INPUT>({ type: "object", properties, ...needs, additionalProperties: false });
}
