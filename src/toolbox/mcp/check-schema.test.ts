import { expect, test } from "vitest";
import { checkSchema } from "./check-schema.ts";

const person = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 5 },
    age: { type: "integer", minimum: 0, maximum: 150 },
    kind: { enum: ["cat", "dog"] },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    home: { $ref: "#/$defs/place" },
    either: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  required: ["name"],
  additionalProperties: false,
  $defs: { place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
};

test.each([
  ["all fields", { name: "Ada", age: 3, kind: "cat", tags: ["a"], home: { city: "Rome" }, either: null }],
  ["letters outside of the first plane count as one", { name: "😀😀😀😀😀" }],
  ["only what is required", { name: "Ada" }],
])("passes: %s", (_what, value) => {
  expect(checkSchema(person, value)).toBeUndefined();
});

test.each([
  [[], "the input must be an object, not an array"],
  [{}, 'the input needs the field "name"'],
  [{ name: 1 }, "name must be a string, not a number"],
  [{ name: "" }, "name must have a length of at least 1"],
  [{ name: "123456" }, "name must have a length of at most 5"],
  [{ name: "a", age: 1.5 }, "age must be an integer, not a number"],
  [{ name: "a", age: 151 }, "age must be at most 150"],
  [{ name: "a", kind: "cow" }, 'kind must be one of "cat", "dog"'],
  [{ name: "a", tags: ["a", 2] }, "tags[1] must be a string, not a number"],
  [{ name: "a", tags: ["a", "b", "c"] }, "tags must have at most this many items: 2"],
  [{ name: "a", home: {} }, 'home needs the field "city"'],
  [{ name: "a", either: 1 }, "either must be a string, not a number (or fit another choice)"],
])("says what is wrong with %j", (value, fault) => {
  expect(checkSchema(person, value)).toBe(fault);
});

test("an unknown field is answered with the known ones", () => {
  expect(checkSchema({ properties: { a: {} }, additionalProperties: false }, { b: 1 })).toBe(
    'the input must not have the field "b" (known fields: a)',
  );
});

test.each([
  ["a schema that refers to itself", { $ref: "#" }],
  ["two that refer to each other", { $ref: "#/a", a: { $ref: "#/b" }, b: { $ref: "#/a" } }],
  ["a reference to another place", { $ref: "https://example.com/schema" }],
  ["a reference that cannot be read", { $ref: "#/%" }],
  ["the prototype", { $ref: "#/__proto__/constructor" }],
  ["a pattern that takes for ever", { type: "string", pattern: "^(a+)+$" }],
  ["no schema", 7],
])("hostile: %s passes and returns", (_what, schema) => {
  expect(checkSchema(schema, `${"a".repeat(40)}!`)).toBeUndefined();
});

test("a schema that branches without end is given up", () => {
  const wide = { anyOf: Array.from({ length: 50 }, () => ({ $ref: "#" })), type: "string" };
  expect(() => checkSchema(wide, "a")).not.toThrow();
  expect(
    checkSchema(
      { type: "array", items: { type: "string" } },
      Array.from({ length: 1e6 }, () => "a"),
    ),
  ).toBe(undefined);
});

test.each<[string, object, unknown]>([
  ["an object as JSON", { const: 1 }, { text: "x".repeat(1_000_000) }],
  ["the length of a text", { minLength: 2_000_000 }, "x".repeat(1_000_000)],
  [
    "many fields",
    { additionalProperties: false },
    Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [i, 1])),
  ],
  ["a long reference", { $ref: `#/${"a/".repeat(10_000)}`, not: {} }, 1],
])("thousands of choices that each look at %s cost no more than one", (_what, choice, value) => {
  const anyOf = Array.from({ length: 10_000 }, () => choice);
  expect(() => checkSchema({ anyOf }, value)).not.toThrow();
});
