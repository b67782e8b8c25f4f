import type { Egress, SandboxFiles } from "../sandbox.ts";

/** The one way out of the browser. `createEgress` makes one; with `check` a wrong address is refused before it is opened. */
export type BrowserEgress = Egress & {
  check?(url: string): { readonly allowed: boolean; readonly reason?: string };
};

/** What {@link createBrowserTools} is given. */
export interface BrowserToolsOptions {
  /** Every request of every page goes through it, and nothing else gets out. */
  readonly egress: BrowserEgress;
  /**
   * Pages and cookies of this name are shared by all conversations of the agent. Default: those of the turn's conversation, which
   * no other sees. Two agents never share any. Outside agents the name alone counts; without one the tools have their own.
   */
  readonly session?: string;
  /** Where screenshots and PDFs are saved. Without it those two tools are not there. */
  readonly workspace?: SandboxFiles;
  /** The folder in the workspace for them. Default `/browser`. */
  readonly folder?: string;
  /** Chromium's program. Default: `CHROME_PATH`, or where the system and Playwright put it. */
  readonly executablePath?: string;
  /**
   * `bubblewrap` (default): the browser runs in a jail without files or network. `none`: it runs as a process of this user; file
   * addresses are refused and requests go through the egress, but a page that breaks out of Chromium is on the machine.
   */
  readonly jail?: "bubblewrap" | "none";
  /** A browser that no other session shares. Default false. */
  readonly ownBrowser?: boolean;
  /** Milliseconds without a call after which the session is closed. Default 5 minutes. */
  readonly idleMs?: number;
  /** Default 3. */
  readonly maxPages?: number;
  /** Milliseconds for one navigation. Default 60 seconds. */
  readonly navigationMs?: number;
  /** Bytes of one response. Default 20 MB. */
  readonly responseBytes?: number;
  /** Characters of a page that the model reads at a time. Default 20,000. */
  readonly maxChars?: number;
  /** Megabytes of the whole browser. Default 2,048. */
  readonly memoryMB?: number;
}

const DEFAULTS = {
  jail: "bubblewrap" as NonNullable<BrowserToolsOptions["jail"]>,
  ownBrowser: false,
  idleMs: 5 * 60_000,
  maxPages: 3,
  navigationMs: 60_000,
  responseBytes: 20 << 20,
  maxChars: 20_000,
  memoryMB: 2_048,
};

/** The options with their defaults. */
export type BrowserSettings = Readonly<typeof DEFAULTS> & Pick<BrowserToolsOptions, "executablePath">;

export function browserSettings(options: Partial<BrowserToolsOptions>): BrowserSettings {
  const given = Object.entries(options).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  return { ...DEFAULTS, executablePath: options.executablePath, ...Object.fromEntries(given) };
}

/** What a tool shows of a page. All of it but `page` and `notes` was written by the page. */
export interface PageView {
  readonly page: number;
  readonly url: string;
  readonly title: string;
  readonly content: string;
  /** What is true of the content and not in it: that it was cut, that a dialog was dismissed. */
  readonly notes: readonly string[];
}

export type PageAction = "click" | "fill" | "press" | "select" | "hover";
export type ReadFormat = "markdown" | "links" | "text";

export interface CallOptions {
  readonly page: number | undefined;
  readonly signal: AbortSignal | undefined;
}
