import { jsonSchema, type JSONSchema7, type Schema } from "ai";

/** The schema of a tool that takes an object with these fields and no others. @param required those that must be there */
export function objectInput<INPUT>(
  required: readonly string[],
  properties: Record<string, JSONSchema7>,
): Schema<INPUT> {
  const needs = required.length === 0 ? {} : { required: [...required] };
  return jsonSchema<INPUT>({ type: "object", properties, ...needs, additionalProperties: false });
}
