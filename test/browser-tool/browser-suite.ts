import { chmod, lstat, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Tool } from "ai";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import { createBrowserTools } from "../../src/toolbox/sandbox/browser/browser-tools.ts";
import type { BrowserToolsOptions } from "../../src/toolbox/sandbox/browser/browser-options.ts";
import { chromiumPath } from "../browser/chromium-path.ts";
import type { Site } from "./site.ts";

/** The packed browser is unpacked for its own user only; in the jail it runs as another one. */
export async function openChromium(): Promise<string> {
  const path = await chromiumPath();
  await openToAll(dirname(path));
  return path;
}

async function openToAll(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.isSymbolicLink()) return;
  const runnable = found.isDirectory() || (found.mode & 0o100) !== 0;
  const wanted = found.mode | (runnable ? 0o055 : 0o044);
  if (wanted !== found.mode) await chmod(path, wanted);
  if (found.isDirectory()) for (const name of await readdir(path)) await openToAll(join(path, name));
}

/** A model's view of the tools: what it calls, and the text that it reads. */
export interface Caller {
  readonly names: readonly string[];
  call(name: string, input?: Record<string, unknown>): Promise<string>;
  output(name: string, input?: Record<string, unknown>): Promise<unknown>;
}

export async function callerFor(site: Site, options: Partial<BrowserToolsOptions>): Promise<Caller> {
  const egress = createEgress({ allow: [`http://${site.host}`], allowPrivate: [site.host] });
  const tools: Record<string, Tool> = await createBrowserTools({ egress, ...options });
  const output = async (name: string, input: Record<string, unknown> = {}): Promise<unknown> => {
    const result: unknown = await tools[name]?.execute?.(input, { toolCallId: "c", messages: [], context: undefined });
    return result;
  };
  return {
    names: Object.keys(tools),
    output,
    async call(name, input = {}) {
      const result = await output(name, input);
      const shown = await tools[name]?.toModelOutput?.({ toolCallId: "c", input, output: result });
      if (shown?.type === "text" || shown?.type === "error-text") return shown.value;
      return JSON.stringify(result);
    },
  };
}

/** The ref of an element in a snapshot, by its role and name. */
export function refOf(snapshot: string, element: string): string {
  const line = snapshot.split("\n").find((one) => one.includes(element));
  const ref = /\[ref=(\w+)\]/.exec(line ?? "")?.[1];
  if (ref === undefined) throw new Error(`No ${element} in:\n${snapshot}`);
  return ref;
}

/** Waits for what a page writes when it is done. */
export async function resultOf(caller: Caller): Promise<string> {
  for (let tries = 0; tries < 100; tries += 1) {
    const text = await caller.call("browser_read", { format: "text" });
    const found = /result: (.*)/.exec(text)?.[1];
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The page did not say what it found.");
}
