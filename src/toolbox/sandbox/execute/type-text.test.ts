import { asSchema } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { commentText, typeText } from "./type-text.ts";

test.each<[unknown, string]>([
  [{ type: "string" }, "string"],
  [{ type: "integer" }, "number"],
  [{ type: ["string", "null"] }, "string | null"],
  [{ enum: ["a", "b", 3, null] }, '"a" | "b" | 3 | null'],
  [{ const: "x" }, '"x"'],
  [{ type: "array", items: { type: "string" } }, "string[]"],
  [{ type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } }, "(string | number)[]"],
  [{ type: "array", prefixItems: [{ type: "string" }, { type: "number" }] }, "[string, number]"],
  [{ type: "array" }, "unknown[]"],
  [{ type: "object" }, "{}"],
  [{ type: "object", additionalProperties: { type: "number" } }, "Record<string, number>"],
  [
    { type: "object", properties: { a: { type: "string", description: "The\n first." }, "b-c": {} }, required: ["a"] },
    '{ a: string /* The first. */; "b-c"?: unknown }',
  ],
  [
    {
      allOf: [{ type: "object", properties: { a: { type: "string" } } }, { $ref: "#/$defs/B" }],
      $defs: { B: { type: "object", properties: { b: { type: "number" } } } },
    },
    "{ a?: string } & { b?: number }",
  ],
  [
    { $ref: "#/$defs/Node", $defs: { Node: { type: "object", properties: { next: { $ref: "#/$defs/Node" } } } } },
    "{ next?: unknown }",
  ],
  [{ $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "boolean" } } }, "boolean"],
  [{ $ref: "https://elsewhere.example/schema" }, "unknown"],
  [{ $ref: "#/constructor" }, "unknown"],
  [{ anyOf: [{ type: "string" }, {}] }, "unknown"],
  [true, "unknown"],
  [false, "never"],
  [null, "unknown"],
  ["nonsense", "unknown"],
])("%j", (schema, expected) => {
  expect(typeText(schema)).toBe(expected);
});

test("a schema of zod", async () => {
  const schema = z.object({
    to: z.array(z.string()).describe("Addresses"),
    when: z.union([z.literal("now"), z.number()]).optional(),
    kind: z.enum(["a", "b"]).default("a"),
    more: z.record(z.string(), z.boolean()).nullable(),
  });
  expect(typeText(await asSchema(schema).jsonSchema)).toBe(
    '{ to: string[] /* Addresses */; when?: "now" | number; kind?: "a" | "b"; more: Record<string, boolean> | null }',
  );
});

test("what is long is cut", () => {
  const fields = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, { type: "string" }]));
  expect(typeText({ type: "object", properties: fields })).toContain("/* 60 more */");
  expect(typeText({ enum: Array.from({ length: 100 }, (_, at) => `e${at}`) })).toContain("/* 76 more */ string");
  let deep: unknown = { type: "string" };
  for (let at = 0; at < 50; at++) deep = { type: "object", properties: { deep } };
  expect(typeText(deep).length).toBeLessThan(200);
});

test("a description cannot leave its comment", () => {
  expect(commentText("*/ evil(); /*")).toBe("* / evil(); /*");
  expect(commentText("x".repeat(1_000)).length).toBe(160);
  expect(commentText(undefined)).toBe("");
});

test.each(["anyOf", "allOf", "prefixItems"])(
  "a short schema that is large when its references are followed: %s",
  (key) => {
    const level = (ref: string) => ({ type: "array", [key]: Array.from({ length: 700 }, () => ({ $ref: ref })) });
    const schema = { ...level("#/a"), a: level("#/b"), b: level("#/c"), c: { type: "string" } };
    expect(typeText(schema).length).toBeLessThan(50_000);
  },
);
