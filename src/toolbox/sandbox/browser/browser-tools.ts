import type { Tool, ToolExecutionOptions } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { checkNumbers, namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { currentOwner, type Owner } from "../../../base/owner.ts";
import { durableTool } from "../../../tool/define.ts";
import type { Probe } from "../sandbox.ts";
import {
  browserSettings,
  type BrowserToolsOptions,
  type CallOptions,
  type PageAction,
  type ReadFormat,
} from "./browser-options.ts";
import {
  type BrowserErrorOutput,
  type BrowserFileOutput,
  type BrowserPageOutput,
  pageOutput,
  saveFile,
  showFile,
  showPage,
} from "./page-output.ts";
import type { PagesOfSession } from "./node/browser-session.ts";
import { objectInput } from "../../../base/json-schema.ts";

/** The tools of a browser, by name. Empty where there is no browser; no pictures without a workspace. */
export type BrowserTools = Record<string, Tool>;

const loadSessions = async () => await import("./node/sessions.ts");

/** Whether {@link createBrowserTools} can offer its tools here, and what is missing if not. Starts no browser. Never throws. */
export async function probeBrowser(options: Pick<BrowserToolsOptions, "executablePath" | "jail"> = {}): Promise<Probe> {
  try {
    const { probe } = await loadSessions();
    return await probe(browserSettings(options));
  } catch {
    return { ok: false, missing: "The browser tools need Node.js." };
  }
}

/** Closes a session's pages and forgets its cookies; default: the conversation's. The browser ends when nobody uses it. */
export async function closeBrowserSession(session?: string): Promise<void> {
  const { closeSession } = await loadSessions();
  await closeSession(sessionKey(currentOwner(), session, undefined));
}

/** Closes all sessions and ends all browsers of this process: for its end. */
export async function closeBrowsers(): Promise<void> {
  const { closeAll } = await loadSessions();
  await closeAll();
}

/**
 * Tools to look at pages: open addresses, read, and act on elements by their refs. One browser serves the process; pages and
 * cookies belong to the agent whose turn uses them. Chromium starts with the first call, in a jail; all its requests go through
 * `egress`.
 * @returns no tools where {@link probeBrowser} says no
 * @throws PerdureError `bad_config` for options that cannot work
 */
export async function createBrowserTools(options: BrowserToolsOptions): Promise<BrowserTools> {
  checkOptions(options);
  const settings = browserSettings(options);
  if (!(await probeBrowser(options)).ok) return {};
  const { sessionOf, closeSession } = await loadSessions();
  const maker = currentOwner();
  const lone = ++lones;
  // Whoever calls a tool uses its own pages, also where one agent has made the tools for others.
  const key = () => sessionKey(currentOwner() ?? maker, options.session, lone);
  const session = async () => await sessionOf(key(), settings, options.egress);
  const tools: Record<string, Tool> = {
    browser_open: pageTool(
      "Opens an http or https address in a browser and shows the page as a tree of elements with refs. Only allowed hosts can be opened.",
      {
        url: text("The address."),
        new_page: { type: "boolean", description: "Open it in another page. Default: false." },
      },
      ["url"],
      async (input, call) =>
        await (await session()).open(stringOf(input, "url"), { ...call, newPage: input.new_page === true }),
    ),
    browser_snapshot: pageTool(
      "Shows the page as it is now, as a tree of elements with refs.",
      {},
      [],
      async (_, call) => await (await session()).snapshot(call),
    ),
    browser_act: pageTool(
      "Does something with an element of the last snapshot and shows the page after it.",
      {
        ref: text('The ref of the element, such as "e12".'),
        action: { type: "string", enum: [...ACTIONS], description: "What to do." },
        value: text("The text to fill in, the key to press (such as Enter), or the option to select."),
      },
      ["ref", "action"],
      async (input, call) => {
        const value = input.value === undefined ? undefined : stringOf(input, "value");
        return await (await session()).act(stringOf(input, "ref"), oneOf(input, "action", ACTIONS), value, call);
      },
    ),
    browser_read: pageTool(
      "Reads the text of the page: as markdown, as plain text, or only its links.",
      { format: { type: "string", enum: [...FORMATS], description: "Default: markdown." } },
      [],
      async (input, call) => {
        const format = input.format === undefined ? "markdown" : oneOf(input, "format", FORMATS);
        return await (await session()).read(format, call);
      },
    ),
    browser_close: closeTool(async (page) => {
      if (page !== undefined) return await (await session()).close(page);
      await closeSession(key());
      return "All pages are closed.";
    }),
  };
  return options.workspace === undefined ? tools : { ...tools, ...fileTools(options, options.workspace, session) };
}

/** Counts the tools that were made, for those that belong to nobody. */
let lones = 0;

/** What names a session in this process. */
function sessionKey(owner: Owner | undefined, name: string | undefined, lone: number | undefined): string {
  if (name !== undefined) return JSON.stringify(["named", owner?.agent ?? null, name]);
  if (owner === undefined) return JSON.stringify(["lone", lone ?? null]);
  return JSON.stringify(["conversation", owner.agent, owner.session ?? null]);
}

const ACTIONS: readonly PageAction[] = ["click", "fill", "press", "select", "hover"];
const FORMATS: readonly ReadFormat[] = ["markdown", "links", "text"];

type Input = Readonly<Record<string, unknown>>;
type Property = {
  readonly type: "string" | "boolean" | "integer";
  readonly description: string;
  readonly enum?: string[];
};

function text(description: string): Property {
  return { type: "string", description };
}

const pageNumber: Property = { type: "integer", description: "Which page, by its number. Default: the last one used." };

function toSchema(properties: Readonly<Record<string, Property>>, required: readonly string[]) {
  return objectInput<Input>(required, { ...properties, page: pageNumber });
}

type PageOutput = BrowserPageOutput | BrowserErrorOutput;

function pageTool(
  description: string,
  properties: Readonly<Record<string, Property>>,
  required: readonly string[],
  work: (input: Input, call: CallOptions) => Promise<Parameters<typeof pageOutput>[0]>,
): Tool {
  const made: Tool<Input, PageOutput> = {
    description,
    inputSchema: toSchema(properties, required),
    execute: (input, options) => answer(async () => pageOutput(await work(input, callOf(input, options)))),
    toModelOutput: ({ output }) => showPage(output),
  };
  return durableTool(made as Tool, { replay: "never" });
}

function closeTool(close: (page: number | undefined) => Promise<string>): Tool {
  const made: Tool<Input, { readonly done: string } | BrowserErrorOutput> = {
    description: "Closes a page, or with no `page` all of them. Use it when you are done.",
    inputSchema: toSchema({}, []),
    execute: (input) => answer(async () => ({ done: await close(pageOf(input)) })),
  };
  return durableTool(made as Tool, { replay: "never" });
}

function fileTools(
  options: BrowserToolsOptions,
  workspace: NonNullable<BrowserToolsOptions["workspace"]>,
  session: () => Promise<PagesOfSession>,
): BrowserTools {
  const folder = options.folder ?? "/browser";
  const fileTool = (
    description: string,
    properties: Readonly<Record<string, Property>>,
    type: { readonly mediaType: string; readonly ending: string },
    make: (input: Input, call: CallOptions) => ReturnType<PagesOfSession["pdf"]>,
  ): Tool => {
    const made: Tool<Input, BrowserFileOutput | BrowserErrorOutput> = {
      description,
      inputSchema: toSchema(properties, []),
      execute: (input, call) =>
        answer(async () => await saveFile(workspace, folder, await make(input, callOf(input, call)), type)),
      toModelOutput: async ({ output }) => await showFile(workspace, output),
    };
    return durableTool(made as Tool, { replay: "never" });
  };
  return {
    browser_screenshot: fileTool(
      "Takes a picture of the page, saves it in the workspace and shows it.",
      { full: { type: "boolean", description: "The whole page, not only what fits in a window. Default: false." } },
      { mediaType: "image/png", ending: "png" },
      async (input, call) => await (await session()).screenshot(input.full === true, call),
    ),
    browser_pdf: fileTool(
      "Prints the page to a PDF in the workspace.",
      {},
      { mediaType: "application/pdf", ending: "pdf" },
      async (_, call) => await (await session()).pdf(call),
    ),
  };
}

/** What the model can mend comes back as a sentence; the rest is thrown. */
async function answer<T>(work: () => Promise<T>): Promise<T | BrowserErrorOutput> {
  try {
    return await work();
  } catch (thrown) {
    if (PerdureError.is(thrown)) return { error: thrown.message };
    throw thrown;
  }
}

function callOf(input: Input, { abortSignal }: ToolExecutionOptions<unknown>): CallOptions {
  return { page: pageOf(input), signal: abortSignal };
}

function pageOf({ page }: Input): number | undefined {
  if (page === undefined) return undefined;
  if (typeof page !== "number" || !Number.isSafeInteger(page) || page < 1) {
    throw new PerdureError("bad_input", "`page` must be the number of a page.");
  }
  return page;
}

function stringOf(input: Input, name: string): string {
  const value = input[name];
  if (typeof value !== "string") throw new PerdureError("bad_input", `\`${name}\` must be a string.`);
  return value;
}

function oneOf<T extends string>(input: Input, name: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === input[name]);
  if (found === undefined) throw new PerdureError("bad_input", `\`${name}\` must be one of: ${allowed.join(", ")}.`);
  return found;
}

const optionNames = namesOf<BrowserToolsOptions>()(
  "egress session workspace folder executablePath jail ownBrowser idleMs maxPages navigationMs",
  "responseBytes maxChars memoryMB",
);

function checkOptions(options: BrowserToolsOptions): void {
  refuseUnknown(options, optionNames, "createBrowserTools()");
  const egress: unknown = options.egress;
  if (typeof egress !== "object" || egress === null || !("listen" in egress)) {
    throw new PerdureError(
      "bad_config",
      'createBrowserTools: give `egress`, such as createEgress({ allow: ["example.com"] }).',
    );
  }
  const numbers = ["idleMs", "maxPages", "navigationMs", "responseBytes", "maxChars", "memoryMB"];
  checkNumbers("createBrowserTools", options, numbers);
}
