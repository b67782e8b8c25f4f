// Files at addresses that somebody else wrote: what a name leads to decides whether it is loaded.
import { createServer } from "node:http";
import { createFileDownload } from "perdure/tools";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { openThink, sent } from "./harness.ts";

/** A server of the own network, and how often it was asked. */
async function inside(): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url === "/away") return void response.writeHead(302, { location: "http://evil.example/" }).end();
    response.writeHead(200, { "content-type": "image/png" }).end("secret of the network");
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as { port: number }).port, asked };
}

const one = (url: string) => [{ url: new URL(url), isUrlSupportedByModel: false }];

test("a public name that leads to a private address is not loaded, nor is one that a redirect leads to", async () => {
  const { port, asked } = await inside();
  const resolve = async (host: string) => (host === "evil.example" ? ["169.254.169.254"] : ["127.0.0.1"]);
  const load = createFileDownload({ resolve });
  await expect(load(one(`http://files.example:${port}/`))).rejects.toThrow("not public");
  await expect(load(one(`http://127.0.0.1:${port}/`))).rejects.toThrow("not public");
  await expect(load(one("file:///etc/passwd"))).rejects.toMatchObject({ code: "not_allowed" });
  expect(asked).toEqual([]);
  const own = { resolve, allowPrivate: [`files.example:${port}`] };
  const allowed = createFileDownload(own);
  const [file] = await allowed(one(`http://files.example:${port}/a`));
  expect(new TextDecoder().decode(file?.data)).toBe("secret of the network");
  expect(file?.mediaType).toBe("image/png");
  await expect(allowed(one(`http://files.example:${port}/away`))).rejects.toThrow("not public");
  const small = createFileDownload({ ...own, maxBytes: 5 });
  await expect(small(one(`http://files.example:${port}/a`))).rejects.toMatchObject({ code: "limit" });
  expect(await load([{ url: new URL("https://model.example/x"), isUrlSupportedByModel: true }])).toEqual([null]);
  const [inline] = await load(one("data:text/plain,hello"));
  expect(new TextDecoder().decode(inline?.data)).toBe("hello");
});

test("a turn does not load a file of the own network by a name, unless the agent says so", async () => {
  const { port, asked } = await inside();
  const resolve = async () => ["127.0.0.1"];
  const url = `http://files.example:${port}/chart.png`;
  for (const allowPrivate of [[], [`files.example:${port}`]]) {
    const model = scriptedModel(["Seen."]);
    const kit = await openThink(
      (Base) =>
        class extends Base {
          override fileDownloads = { allowPrivate, resolve };
          override getModel() {
            return model;
          }
        },
    );
    const file = { type: "file", mediaType: "image/png", url } as const;
    const agent = await kit.agent();
    expect(await agent.runTurn({ input: { id: "u", role: "user", parts: [file] } })).toMatchObject({
      status: "completed",
    });
    const isAllowed = allowPrivate.length > 0;
    expect(asked).toHaveLength(isAllowed ? 1 : 0);
    expect(sent(model, 0).join().includes("could not be loaded")).toBe(!isAllowed);
    kit.takeErrors();
  }
});
