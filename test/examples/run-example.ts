import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgentChat, AgentClient, type ChatHandlers } from "perdure/client";
import { onTestFinished } from "vitest";
import { buildPageTo } from "../../examples/shared/page.ts";
import { eventually } from "../host/open-host.ts";
import { makeOnce } from "../support/make-once.ts";
import { runFolder } from "../support/run-folder.ts";

const script = fileURLToPath(new URL("../../scripts/example.ts", import.meta.url));

/** `scripts/example.ts` as a process. */
export interface Run {
  readonly child: ChildProcess;
  /** All that it printed so far. */
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

/** Runs `npm run example …args` in `dir`; killed at the end of the test. No API key reaches it. */
export function runScript(dir: string, args: readonly string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, ["--conditions=perdure-source", script, ...args], {
    cwd: dir,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (output += data.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, output: () => output, exited };
}

/** An example that runs. */
export interface Example extends Run {
  readonly url: string;
}

const examples = fileURLToPath(new URL("../../examples", import.meta.url));

/** Where the page of an example is, built once in a run: beside it, or the one that these two share. */
async function builtPages(name: string): Promise<string> {
  const pages = join(runFolder(), "pages");
  const page = name === "express" || name === "hono" ? "minimal-chat" : name;
  const folder = join(examples, page);
  if (existsSync(join(folder, "page.tsx"))) await makeOnce(join(pages, page), (part) => buildPageTo(folder, part));
  return pages;
}

/** Starts an example on a free port and waits until it says where it is. */
export async function startExample(dir: string, name: string): Promise<Example> {
  const run = runScript(dir, [name], { PERDURE_PAGES: await builtPages(name) });
  const url = await eventually(() => {
    if (run.child.exitCode !== null) throw new Error(run.output());
    return /http:\/\/127\.0\.0\.1:\d+/.exec(run.output())?.[0];
  }, `${name} says where it is`);
  return { ...run, url };
}

/** Opens a chat as a page of the example does; closed at the end of the test. */
export async function openChat(url: string, agent: string, handlers: ChatHandlers = {}): Promise<AgentChat> {
  const client = new AgentClient({ agent, name: "main", host: url });
  onTestFinished(() => client.close());
  const chat = new AgentChat(client);
  onTestFinished(
    chat.subscribe(
      () => {},
      () => handlers,
    ),
  );
  await client.ready;
  return chat;
}

/** The text of the last message, without its tools. */
export function lastText(chat: AgentChat): string {
  const parts = chat.messages.at(-1)?.parts ?? [];
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** What the page at `url` consists of: its HTML and its modules. Fails when one is missing or has another type. */
export async function loadPage(url: string): Promise<{ html: string; modules: string[] }> {
  const html = await load(url, "text/html");
  const sources = [...html.matchAll(/(?:src|from)\s*=?\s*"([^"]+\.js)"/g)].map(([, source = ""]) => source);
  const modules = sources.map((source) => load(new URL(source, url).href, "text/javascript"));
  return { html, modules: await Promise.all(modules) };
}

async function load(url: string, type: string): Promise<string> {
  const response = await fetch(url);
  const found = response.headers.get("content-type") ?? "";
  if (!response.ok || !found.startsWith(type)) throw new Error(`${url} is ${response.status} ${found}`);
  return response.text();
}
