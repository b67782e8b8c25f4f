// Outputs that are longer than a small model can read.
import type { LanguageModel } from "ai";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { serverTool } from "../think/harness.ts";
import { openSmall, shown } from "./compacting.ts";

/** As many characters as an output may have by itself: 12,500 tokens. */
const book = (lines: number) =>
  Array.from({ length: lines }, (_, i) => `line ${String(i).padStart(8, "0")}`).join("\n");
const read = serverTool<{ lines: number }>(({ lines }) => book(lines));
const asksOnce = ({ step, userText }: { step: number; userText: string }) =>
  step === 0 && userText.startsWith("read")
    ? { toolCalls: [{ toolName: "read", input: { lines: 1_900 } }] }
    : "I have read it.";

test("an output that is larger than the whole window is read in part, and the turn ends well", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 8_000 } } },
    answer: asksOnce,
    tools: { read },
  });
  expect(await kit.ask("read it")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("I have read it.");
  expect(await kit.compactions()).toEqual([]);
  const request = shown(kit.turns().at(-1));
  // A quarter of the 4,000 tokens that may be sent.
  expect(request.length).toBeGreaterThan(3_000);
  expect(request.length).toBeLessThan(6_000);
  const last = await kit.last();
  const [call] = last?.parts.filter(({ type }) => type === "tool-read") ?? [];
  expect(request).toContain("line 00000000");
  expect(request).toContain("line 00001899");
  expect(request).toContain(`call ${(call as { toolCallId?: string }).toolCallId} of message ${last?.id}`);
  // People see all of it.
  expect(JSON.stringify(call)).toContain("line 00000950");
  // What was sent is sent again in the same bytes, after a restart too, whatever was learned meanwhile.
  for (const words of ["And now?", "And then?"]) {
    await kit.ask(words);
    expect(shown(kit.turns().at(-1)).startsWith(request.slice(0, -1))).toBe(true);
    await kit.restart();
  }
});

test("outputs that were asked for together are read in part too", async () => {
  const kit = await openSmall({
    settings: { modelLimits: { "scripted/*": { window: 16_000 } } },
    answer: ({ step }) =>
      step === 0
        ? { toolCalls: Array.from({ length: 8 }, (_, i) => ({ toolName: "read", input: { lines: 1_900 - i } })) }
        : "I have read them.",
    tools: { read },
  });
  expect(await kit.ask("read all")).toMatchObject({ status: "completed" });
  const request = shown(kit.turns().at(-1));
  expect(request.length).toBeLessThan(4 * 5_000);
  for (let i = 0; i < 8; i++) expect(request).toContain(`line ${String(1_899 - i).padStart(8, "0")}`);
});

test("another model is shown as much as it can read", async () => {
  let model: LanguageModel;
  const large = scriptedModel(asksOnce, { modelId: "large" });
  const small = scriptedModel(() => "I see.", { modelId: "small" });
  model = large;
  const kit = await openSmall({
    settings: { modelLimits: { "*/large": { window: 200_000 }, "*/small": { window: 8_000 } } as never },
    tools: { read },
    extend: (Base) =>
      class extends Base {
        override modelLimits = (name: string) => ({ window: name.endsWith("small") ? 8_000 : 200_000 });
        override getModel() {
          return model;
        }
      },
  });
  await kit.ask("read it");
  const whole = shown(large.calls.at(-1));
  expect(whole).toContain("line 00000950");
  model = small;
  expect(await kit.ask("And you?")).toMatchObject({ status: "completed" });
  expect(shown(small.calls.at(-1))).not.toContain("line 00000950");
  expect(shown(small.calls.at(-1)).length).toBeLessThan(6_000);
  model = large;
  await kit.ask("Back again.");
  expect(shown(large.calls.at(-1)).startsWith(whole.slice(0, -1))).toBe(true);
});

test("who leaves everything to the provider sends outputs as they are", async () => {
  const kit = await openSmall({
    settings: { contextOverflow: false, modelLimits: { "scripted/*": { window: 8_000 } } },
    answer: asksOnce,
    tools: { read },
  });
  await kit.ask("read it");
  expect(shown(kit.turns().at(-1))).toContain("line 00000950");
});
