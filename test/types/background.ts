// Checked by the compiler (`npm run check`), never run.
import { type InferToolInput, type InferToolOutput, jsonSchema, tool } from "ai";
import { durableTool, Think } from "perdure";
import { type BackgroundCall, type BackgroundReceipt, isBackgroundReceipt } from "perdure/chat";
import { expectTypeOf } from "vitest";

const plain = tool({
  inputSchema: jsonSchema<{ scene: string }>({ type: "object" }),
  execute: async ({ scene }) => ({ url: scene }),
});

export const film = durableTool(plain, { background: true, replay: "safe" });
export const later = durableTool(plain, { background: { afterMs: 5_000 } });
expectTypeOf<InferToolOutput<typeof film>>().toEqualTypeOf<{ url: string }>();
expectTypeOf<InferToolInput<typeof later>>().toEqualTypeOf<{ scene: string }>();

// @ts-expect-error a number of milliseconds has a name
export const odd = durableTool(plain, { background: 5_000 });
// @ts-expect-error when is to be said
export const never = durableTool(plain, { background: {} });

export class Studio extends Think {
  override maxBackgroundCalls = 4;
  look(output: unknown) {
    expectTypeOf(this.listBackgroundCalls()).toEqualTypeOf<BackgroundCall[]>();
    expectTypeOf(this.stopBackgroundCall("c1", { reason: "Closed." })).toEqualTypeOf<Promise<boolean>>();
    if (isBackgroundReceipt(output)) expectTypeOf(output).toEqualTypeOf<BackgroundReceipt>();
  }
}
