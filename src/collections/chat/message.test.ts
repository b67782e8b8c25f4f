import { expect, test } from "vitest";
import type { AgentMessage } from "../contract.ts";
import { agentMessageSchema } from "./message.ts";

function check(value: unknown) {
  return agentMessageSchema["~standard"].validate(value);
}

test("a message needs who, whom and what; the rest is filled in, and what is unknown stays", () => {
  const short = { actorId: "ann", targetAgent: "researcher", content: "Hello" };
  expect(check({ ...short, mood: "good" })).toEqual({
    value: {
      ...short,
      mood: "good",
      id: expect.any(String),
      role: "user",
      createdAt: expect.any(String),
      processed: false,
    },
  });
  expect(check({ ...short, id: "m1", role: "system", processed: true })).toMatchObject({
    value: { id: "m1", role: "system", processed: true },
  });
});

test.each([
  ["no object", null],
  ["content", { actorId: "ann", targetAgent: "researcher" }],
  ["role", { actorId: "ann", targetAgent: "researcher", content: "x", role: "admin" }],
  ["processed", { actorId: "ann", targetAgent: "researcher", content: "x", processed: "no" }],
  ["requestId", { actorId: "ann", targetAgent: "researcher", content: "x", requestId: 1 }],
])("what is no message is refused, with the field: %s", (what, value) => {
  const message = expect.any(String);
  expect(check(value)).toEqual({ issues: [value === null ? { message } : { message, path: [what] }] });
});

test("messages that are written within one millisecond have times in their order", () => {
  const times = Array.from({ length: 50 }, () => {
    const checked = check({ actorId: "ann", targetAgent: "researcher", content: "x" });
    return "value" in checked ? (checked.value as AgentMessage).createdAt : "";
  });
  expect([...new Set(times)].sort()).toEqual(times);
});
