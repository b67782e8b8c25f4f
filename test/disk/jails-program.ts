// A jail and a browser, where nothing but a directory can be written to. Says how each went.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { closeBrowsers, createBrowserTools, createEgress, createProcessSandbox } from "perdure/tools";

const [dir = "", executablePath = ""] = process.argv.slice(2);
const say = (line: string) => appendFileSync(join(dir, "said"), `${line}\n`);

const site = createServer((_request, response) =>
  response.setHeader("content-type", "text/html").end("<h1>Hello</h1>"),
);
await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
const place = `127.0.0.1:${(site.address() as AddressInfo).port}`;
const egress = createEgress({ allow: [`http://${place}`], allowPrivate: [place] });

const sandbox = createProcessSandbox();
const probe = await sandbox.probe();
if (!probe.ok) say(`no jail: ${probe.missing}`);
else {
  const result = await sandbox.run({ language: "bash", code: "touch /tmp/a && echo ran" });
  say(`jail: ${result.logs.map(({ text }) => text).join() || result.status}`);
}
const tools = await createBrowserTools({ egress, executablePath, jail: probe.ok ? "bubblewrap" : "none" });
const shown = await tools.browser_open?.execute?.(
  { url: `http://${place}/` },
  { toolCallId: "c", messages: [], context: undefined },
);
say(`browser: ${JSON.stringify(shown).includes("Hello") ? "shows the page" : JSON.stringify(shown)}`);
await closeBrowsers();
site.close();
