// Files that a model cannot fetch itself and that cannot be loaded for it: the conversation goes on without them.
import type { UIMessage } from "ai";
import { scriptedModel, type Script } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openThink, sent, serverTool } from "./harness.ts";

/** Nobody downloads from the own machine: that fails at once, everywhere. */
const GONE = "http://127.0.0.1:9/gone/chart.png?key=secret";
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function talk(script: Script, output?: unknown) {
  const model = scriptedModel(script);
  const look = serverTool(() => "seen", {
    ...(output !== undefined && { toModelOutput: () => output as { type: "text"; value: string } }),
  });
  return openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look };
        }
      },
  ).then((kit) => Object.assign(kit, { model }));
}

const withFile = (id: string, ...parts: UIMessage["parts"]): UIMessage => ({
  id,
  role: "user",
  parts: [{ type: "text", text: "What is this?" }, ...parts],
});
const chart = { type: "file", mediaType: "image/png", filename: "chart.png", url: GONE } as const;
const NOTE = "[The file chart.png (image/png) could not be loaded.]";

test("the model reads that a file could not be loaded; the turn and those after it go on; it is reported once", async () => {
  const kit = await talk([{ toolCalls: [{ toolName: "look", input: {} }] }, "No chart, sorry.", "Fine."]);
  const agent = await kit.agent();
  const pixel = { type: "file", mediaType: "image/png", url: PIXEL } as const;
  const asked = withFile("u1", chart, pixel);
  expect(await agent.runTurn({ input: asked })).toMatchObject({ status: "completed" });
  expect(await kit.ask("Go on.")).toMatchObject({ status: "completed" });
  expect(kit.model.calls).toHaveLength(3);
  for (const call of [0, 1, 2]) {
    const [first = ""] = sent(kit.model, call);
    expect(first).toContain(NOTE);
    expect(first).not.toContain("secret");
    // The one beside it is there.
    expect(first).toContain("iVBORw0KGgo");
  }
  const errors = kit.takeErrors();
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(/^A file could not be loaded, and the model is told so: .*127\.0\.0\.1/);
  const [stored] = await kit.stored();
  expect(stored?.parts).toEqual(asked.parts);
  expect((await kit.stored()).map(textIn)).toEqual(["What is this?", "No chart, sorry.", "Go on.", "Fine."]);
});

test("several lost files, with and without a name, cost one model call", async () => {
  const kit = await talk(["Nothing to see."]);
  const other = { type: "file", mediaType: "application/pdf", url: "http://127.0.0.1:9/b" } as const;
  const agent = await kit.agent();
  expect(await agent.runTurn({ input: withFile("u1", chart, other, chart) })).toMatchObject({ status: "completed" });
  expect(kit.model.calls).toHaveLength(1);
  const [first = ""] = sent(kit.model, 0);
  expect(first.split(NOTE)).toHaveLength(3);
  expect(first).toContain("[The file (application/pdf) could not be loaded.]");
  expect(kit.takeErrors()).toHaveLength(2);
});

test.each([
  { type: "content", value: [{ type: "file-url", url: GONE, mediaType: "image/png" }] },
  { type: "content", value: [{ type: "image-url", url: GONE }] },
  { type: "content", value: [{ type: "file", mediaType: "image/png", data: { type: "url", url: new URL(GONE) } }] },
])("a file in a tool's output: %j", async (output) => {
  const kit = await talk([{ toolCalls: [{ toolName: "look", input: {} }] }, "done"], output);
  expect(await kit.ask("Look.")).toMatchObject({ status: "completed" });
  expect(sent(kit.model, 1).join("")).toMatch(/\[The file( \(image\/png\))? could not be loaded\.\]/);
  expect(kit.takeErrors()).toHaveLength(1);
});

test("each life reports a lost file anew", async () => {
  const kit = await talk(["one", "two"]);
  await (await kit.agent()).runTurn({ input: withFile("u1", chart) });
  expect(kit.takeErrors()).toHaveLength(1);
  await kit.nextLife();
  await kit.ask("And now?");
  expect(kit.takeErrors()).toHaveLength(1);
});

test.each(["ftp://example.com/a.png", "file:///etc/passwd", "blob:https://example.com/1", "gs://bucket/a.png", "x:y"])(
  "a file that server code gave, at an address of a kind that cannot be loaded, costs that file and no turn: %s",
  async (url) => {
    const kit = await talk(["ok", "still ok"]);
    const part = { ...chart, url };
    expect(await (await kit.agent()).runTurn({ input: withFile("u1", part) })).toMatchObject({ status: "completed" });
    expect(await kit.ask("Go on.")).toMatchObject({ status: "completed" });
    for (const call of [0, 1]) expect(sent(kit.model, call)[0]).toContain(NOTE);
    expect(kit.takeErrors()).toHaveLength(1);
  },
);

test.each(["data:", "data:image/png;base64", "data:image/png;base64,%%%", "data:image/png,not%20base64"])(
  "a data URL that holds nothing readable costs no turn: %s",
  async (url) => {
    const kit = await talk(["ok", "still ok"]);
    const part = { type: "file", mediaType: "image/png", url } as const;
    expect(await (await kit.agent()).runTurn({ input: withFile("u1", part) })).toMatchObject({ status: "completed" });
    expect(await kit.ask("Go on.")).toMatchObject({ status: "completed" });
  },
);
