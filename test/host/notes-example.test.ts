import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { JSDOM } from "jsdom";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, tempDir } from "./open-host.ts";

const main = fileURLToPath(new URL("../../examples/notes/main.ts", import.meta.url));

interface Example {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

/** Runs the example in a folder of its own. */
function start(dir: string, port = "0"): Example {
  const child = spawn(process.execPath, ["--conditions=perdure-source", main], {
    cwd: dir,
    env: { ...process.env, PORT: port },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data: Buffer) => (output += data.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, output: () => output, exited };
}

async function whenReady(example: Example): Promise<string> {
  return eventually(() => {
    if (example.child.exitCode !== null) throw new Error(example.output());
    return /running at (http:\S+)/.exec(example.output())?.[1];
  }, "the example says where it runs");
}

test("what it prints works: the page, both curl commands, live state, and Ctrl-C stops in order", async () => {
  const dir = tempDir();
  const example = start(dir);
  const url = await whenReady(example);
  expect(example.output()).toContain(`curl -X POST ${url}/agents/notes/main -d "buy milk"`);
  expect(example.output()).toContain("Ctrl-C stops");

  const page = await fetch(url);
  expect(page.headers.get("content-type")).toContain("text/html");
  expect(await page.text()).toContain("new WebSocket(");
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  const refused = await fetch(`${url}/agents/notes/main`, { method: "POST", body: " " });
  expect([refused.status, await refused.text()]).toEqual([400, "A note needs some text."]);

  const client = await connect({ url }, "/agents/notes/main");
  expect(client.states()).toEqual([{ notes: [] }]);
  const posted = await fetch(`${url}/agents/notes/main`, { method: "POST", body: "buy milk" });
  expect(await posted.json()).toEqual([{ id: 1, text: "buy milk" }]);
  expect(await (await fetch(`${url}/agents/notes/main`)).json()).toEqual([{ id: 1, text: "buy milk" }]);
  await client.call("add", "and bread");
  expect(client.states().at(-1)).toEqual({
    notes: [
      { id: 1, text: "buy milk" },
      { id: 2, text: "and bread" },
    ],
  });
  await expect(client.call("add", "  ")).rejects.toThrow("A note needs some text.");
  await client.call("remove", 1);
  await client.call("remindIn", 2, 1.5);

  example.child.kill("SIGINT");
  expect((await client.whenClosed()).code).toBe(1012);
  expect(await example.exited).toBe(0);
  expect(existsSync(join(dir, ".perdure", "host.db"))).toBe(true);

  // The reminder rings in the next process, with the list as it was.
  const again = start(dir);
  const back = await connect({ url: await whenReady(again) }, "/agents/notes/main");
  await back.frame(({ state }) => (state as { notes?: { rang?: boolean }[] } | undefined)?.notes?.[0]?.rang === true);
  expect(back.states().at(-1)).toEqual({ notes: [{ id: 2, text: "and bread", rang: true }] });
});

test("the page shows the list live, adds, reminds, removes, and says what went wrong", async () => {
  const url = await whenReady(start(tempDir()));
  const [mine, theirs] = [await openPage(url), await openPage(url)];
  expect(mine.text("#list")).toBe("No notes yet.");
  mine.submit("<b>buy milk</b>");
  await eventually(() => theirs.text("#list").includes("<b>buy milk</b>"), "the other page shows it");
  mine.submit("  ");
  await eventually(() => mine.text("#error") === "A note needs some text.", "the error is shown");
  theirs.click("Remind in 10 s");
  await eventually(() => mine.text("#list").includes("rings in"), "the reminder is shown");
  theirs.click("Remove");
  await eventually(() => mine.text("#list") === "No notes yet.", "the note is gone");
});

interface Page {
  text(selector: string): string;
  submit(text: string): void;
  click(label: string): void;
}

/** The page in a browser of sorts, connected. */
async function openPage(url: string): Promise<Page> {
  const { window } = await JSDOM.fromURL(url, { runScripts: "dangerously" });
  onTestFinished(() => window.close());
  const { document } = window;
  const find = (selector: string) => document.querySelector<HTMLElement>(selector) ?? document.body;
  const page: Page = {
    text: (selector) => find(selector).textContent,
    submit(text) {
      (find("#text") as HTMLInputElement).value = text;
      find("#add").click();
    },
    click: (label) => [...document.querySelectorAll("button")].find((button) => button.textContent === label)?.click(),
  };
  await eventually(() => page.text("#status") === "connected", "the page is connected");
  return page;
}

test("a taken port and a directory in use are told plainly", async () => {
  const dir = tempDir();
  const first = start(dir);
  const url = await whenReady(first);
  const samePlace = start(dir);
  expect(await samePlace.exited).toBe(1);
  expect(samePlace.output()).toContain("is in use by another Perdure host");
  const samePort = start(tempDir(), new URL(url).port);
  expect(await samePort.exited).toBe(1);
  expect(samePort.output()).toContain("The port is taken");
  for (const { output } of [samePlace, samePort]) expect(output()).not.toContain("    at ");
});
