import type { ToolSet } from "ai";
import { scriptedModel } from "perdure/testing";
import { test } from "vitest";
import { openThink, serverTool } from "../think/harness.ts";
for (const depth of [500, 1500, 4000, 20000])
test("A9 " + depth, async () => {
  const model = scriptedModel(({ step, userText }) => step === 0 && userText === "x" ? { toolCalls: [{ toolName: "a", input: JSON.parse('{"deep":' + "[".repeat(depth) + "]".repeat(depth) + "}"), toolCallId: "c1" }] } : "Done.");
  const kit = await openThink((Base) => class extends Base { override getModel() { return model; } override getTools(): ToolSet { return { a: serverTool(() => 1) }; }
   override onChatError(e: any) { console.log("STACK", depth, e?.stack?.split("\n").slice(0, 6).join(" | ")); return e; } });
  const r = await kit.ask("x").catch((e: Error) => "ERR " + e.message);
  console.log("A9", depth, JSON.stringify(r)?.slice(0, 200));
  const r2 = await kit.ask("y").catch((e: Error) => "ERR " + e.message);
  console.log("A9 next", depth, JSON.stringify(r2)?.slice(0, 200));
});
