import { expect, test } from "vitest";
import { sanitizeMessage } from "./sanitize.ts";
import type { Part, UIMessage } from "./types.ts";

const message = (...parts: Part[]): UIMessage => ({ id: "a", role: "assistant", parts });

test("OpenAI's item ids and encrypted reasoning go, other metadata stays", () => {
  const clean = sanitizeMessage(
    message(
      {
        type: "text",
        text: "x",
        providerMetadata: { openai: { itemId: "i", phase: "final" }, other: { itemId: "stays" } },
      },
      { type: "text", text: "y", providerMetadata: { openai: { itemId: "i" } } },
      { type: "reasoning", text: "hm", providerMetadata: { azure: { itemId: "i", reasoningEncryptedContent: "e" } } },
      {
        type: "tool-t",
        toolCallId: "c",
        state: "output-available",
        input: {},
        output: { itemId: "stays" },
        callProviderMetadata: { openai: { itemId: "i" } },
        resultProviderMetadata: { openai: { itemId: "i", kept: 1 } },
      },
    ),
  );
  expect(clean.parts).toEqual([
    { type: "text", text: "x", providerMetadata: { openai: { phase: "final" }, other: { itemId: "stays" } } },
    { type: "text", text: "y" },
    { type: "reasoning", text: "hm" },
    {
      type: "tool-t",
      toolCallId: "c",
      state: "output-available",
      input: {},
      output: { itemId: "stays" },
      resultProviderMetadata: { openai: { kept: 1 } },
    },
  ]);
  expect(sanitizeMessage(clean)).toBe(clean);
});

test("reasoning without text goes unless its metadata is worth something", () => {
  const redacted: Part = { type: "reasoning", text: "", providerMetadata: { anthropic: { redactedData: "r" } } };
  const clean = sanitizeMessage(
    message(
      { type: "reasoning", text: " \n" },
      { type: "reasoning", text: "", providerMetadata: { openai: { itemId: "i", reasoningEncryptedContent: null } } },
      redacted,
      { type: "text", text: "" },
    ),
  );
  expect(clean.parts).toEqual([redacted, { type: "text", text: "" }]);
  expect(sanitizeMessage(clean)).toBe(clean);
});

test("a clean message is returned as it is", () => {
  const clean = message({ type: "text", text: "x", providerMetadata: { anthropic: { a: 1 } } }, { type: "step-start" });
  expect(sanitizeMessage(clean)).toBe(clean);
});
