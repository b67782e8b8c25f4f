import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { UIMessage } from "ai";
import { build } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { longAnswer } from "../../examples/start/model/guide-text.ts";
import { connectTo, textIn, user } from "../chat/client.ts";
import { connect, eventually, tempDir } from "../host/open-host.ts";

const main = fileURLToPath(new URL("../../examples/start/main.ts", import.meta.url));
const page = join(main, "../page");
const built = mkdtempSync(join(tmpdir(), "perdure-page-"));

// Once, and not in each of the programs: they would write over each other.
beforeAll(async () => {
  const configFile = join(page, "vite.config.ts");
  await build({ root: page, configFile, logLevel: "silent", build: { outDir: built, emptyOutDir: true } });
}, 120_000);
afterAll(() => rmSync(built, { recursive: true, force: true }));

interface Program {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

/** Runs it as `npm start` does, in a folder of its own and without the keys of this machine. */
function start(dir: string, env: Readonly<Record<string, string>> = {}): Program {
  const without = { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", OPENAI_BASE_URL: "", PERDURE_MODEL: "" };
  const child = spawn(process.execPath, ["--conditions=perdure-source", main], {
    cwd: dir,
    env: { ...process.env, ...without, PORT: "0", PERDURE_PAGE: built, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data: Buffer) => (output += data.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, output: () => output, exited };
}

function whenReady(program: Program): Promise<string> {
  return eventually(() => {
    if (program.child.exitCode !== null) throw new Error(program.output());
    return /running at (http:\S+)/.exec(program.output())?.[1];
  }, "the program says where it runs");
}

test("it serves the page and the agents, says what answers, and Ctrl-C stops it in order", async () => {
  const dir = tempDir();
  const program = start(dir);
  const url = await whenReady(program);
  for (const text of ["The built-in guide answers", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "OPENAI_BASE_URL="]) {
    expect(program.output()).toContain(text);
  }
  const opened = await fetch(url);
  const html = await opened.text();
  expect([opened.status, opened.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const [script] = /\/assets\/[^"]+\.js/.exec(html) ?? [];
  const loaded = await fetch(url + (script ?? "/no-script"));
  expect([loaded.status, loaded.headers.get("cache-control")]).toEqual([200, expect.stringContaining("immutable")]);
  const conversation = await fetch(`${url}/c/some-id`, { headers: { accept: "text/html" } });
  expect(await conversation.text()).toBe(html);
  expect(await (await fetch(`${url}/info`)).json()).toEqual({ model: "Built-in guide", builtIn: true });
  expect((await fetch(`${url}/missing.js`)).status).toBe(404);

  const list = await connect({ url }, "/agents/conversations/main");
  expect(list.states()).toEqual([{ items: [] }]);
  program.child.kill("SIGINT");
  expect((await list.whenClosed()).code).toBe(1012);
  expect(await program.exited).toBe(0);
  expect(existsSync(join(dir, ".perdure", "host.db"))).toBe(true);
});

test("settings choose the model and the place of the data", async () => {
  const dir = tempDir();
  const env = { OPENAI_BASE_URL: "http://127.0.0.1:9/v1", PERDURE_MODEL: "tiny", PERDURE_DIR: join(dir, "elsewhere") };
  const program = start(dir, env);
  const url = await whenReady(program);
  expect(program.output()).toContain('"tiny" answers (The model server at 127.0.0.1:9)');
  expect(await (await fetch(`${url}/info`)).json()).toEqual({ model: "tiny", builtIn: false });
  expect(existsSync(join(dir, "elsewhere", "host.db"))).toBe(true);
  expect(existsSync(join(dir, ".perdure"))).toBe(false);
});

test("an answer goes on word for word after the server was killed, with nobody connected", async () => {
  const dir = tempDir();
  const env = { PERDURE_GUIDE_DELAY: "2" };
  const path = "/agents/conversations/main/sub/assistant/x";
  const first = start(dir, env);
  const client = await connectTo((await whenReady(first)) + path);
  client.request("r1", [user("m1", "Give me a long answer")]);
  await client.frame(({ body }) => body?.includes("text-delta") === true, "the first words");
  first.child.kill("SIGKILL");
  await first.exited;

  const url = await whenReady(start(dir, env));
  const read = async () => textIn(((await (await fetch(`${url}${path}/get-messages`)).json()) as UIMessage[]).at(-1));
  await expect.poll(read).toBe(longAnswer());
});

test("what cannot work is told plainly", async () => {
  const dir = tempDir();
  const url = await whenReady(start(dir));
  const cases: readonly [Program, string][] = [
    [start(dir), "is in use by another Perdure host"],
    [start(tempDir(), { PORT: new URL(url).port }), "The port is taken"],
    [start(tempDir(), { PORT: "http" }), 'PORT must be a number from 0 to 65535, not "http"'],
    [start(tempDir(), { OPENAI_BASE_URL: "http://127.0.0.1:9/v1" }), "PERDURE_MODEL has to say"],
    [start(tempDir(), { PERDURE_PAGE: "nowhere" }), "`assets` must be a directory"],
  ];
  for (const [program, text] of cases) {
    expect([await program.exited, program.output()]).toEqual([1, expect.stringContaining(text)]);
    expect(program.output()).not.toContain("    at ");
  }
}, 60_000);
