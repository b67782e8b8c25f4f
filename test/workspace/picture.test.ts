// A picture of the workspace in a conversation: the model sees it, the stored message stays small, and every later request
// says the same, whatever became of the file.
import type { Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, outputsSent } from "../think/harness.ts";

const PNG = Uint8Array.from({ length: 40_000 }, (_, n) => [0x89, 0x50, 0x4e, 0x47][n] ?? n % 251);

const viewer: Script = ({ step, userText }) =>
  step === 0 && userText === "look"
    ? { toolCalls: [{ toolName: "read", input: { path: "/p.png" }, toolCallId: "r" }] }
    : "Seen.";

test("a picture is shown again from its bytes, after a restart and when the file is another", async () => {
  const model = scriptedModel(viewer);
  const kit = await openThink(
    (Base) =>
      class extends (Base as unknown as typeof Think) {
        override getModel() {
          return model;
        }
        constructor(...args: ConstructorParameters<typeof Think>) {
          super(...args);
          Object.assign(this, { workspaceTools: {} });
        }
      },
  );
  await (await kit.agent()).workspace.writeFileBytes("/p.png", PNG);
  await kit.ask("look");
  const shown = outputsSent(model, 1).r;
  expect(JSON.stringify(shown)).toContain(Buffer.from(PNG).toString("base64"));
  const [row] = await kit.rows<{ n: number }>("SELECT max(length(body)) AS n FROM perdure_message");
  expect(row?.n).toBeLessThan(2_000);
  await (await kit.agent()).workspace.writeFile("/p.png", "no picture");
  await kit.restart();
  await kit.ask("and now?");
  expect(outputsSent(model, 2).r).toEqual(shown);
});
