import { expect, test } from "vitest";
import { isSteered, markSteered, steeredInto, withoutReserved, withoutSteered } from "./steered.ts";
import type { UIMessage } from "./types.ts";

const user = (id: string, metadata?: unknown): UIMessage => ({
  id,
  role: "user",
  parts: [{ type: "text", text: id }],
  ...(metadata !== undefined && { metadata }),
});
const answer = (id: string, ...taken: string[]): UIMessage => ({
  id,
  role: "assistant",
  parts: [
    { type: "text", text: id },
    ...taken.map((one) => ({
      type: "steering-message" as const,
      id: one,
      parts: [{ type: "text" as const, text: one }],
    })),
  ],
});

test("a mark keeps the other metadata, its own fields too, and names the answer", () => {
  const marked = markSteered(user("u", { mood: "calm", perdure: { from: "cron" } }), "a");
  expect(marked.metadata).toEqual({ mood: "calm", perdure: { from: "cron", steeredInto: "a" } });
  expect([isSteered(marked), steeredInto(marked)]).toEqual([true, "a"]);
  expect(markSteered(user("u", "not an object"), "a").metadata).toEqual({ perdure: { steeredInto: "a" } });
});

test.each([undefined, null, 7, "perdure", [], {}, { perdure: null }, { perdure: {} }, { perdure: { steeredInto: 1 } }])(
  "metadata %j is no mark",
  (metadata) => {
    expect(isSteered(user("u", metadata))).toBe(false);
  },
);

test("clients cannot set the server's field", () => {
  expect(withoutReserved(user("u", { perdure: { steeredInto: "a" } }))).toEqual(user("u"));
  expect(withoutReserved(user("u", { perdure: 1, mood: "calm" }))).toEqual(user("u", { mood: "calm" }));
  const plain = user("u", { mood: "calm" });
  expect(withoutReserved(plain)).toBe(plain);
});

test("the model reads what was taken once, in the answer; if the answer is gone, as a message", () => {
  const list = [user("u1"), markSteered(user("u2"), "a1"), answer("a1", "u2"), user("u3")];
  expect(withoutSteered(list).map(({ id }) => id)).toEqual(["u1", "a1", "u3"]);
  expect(withoutSteered(list.filter(({ id }) => id !== "a1")).map(({ id }) => id)).toEqual(["u1", "u2", "u3"]);
});
