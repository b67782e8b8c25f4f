import type { CDPSession, Page } from "playwright-core";
import { untilAborted } from "../../../../base/abort.ts";
import { errorText, PerdureError } from "../../../../base/error.ts";
import type {
  BrowserEgress,
  BrowserSettings,
  CallOptions,
  PageAction,
  PageView,
  ReadFormat,
} from "../browser-options.ts";
import { readPage } from "./read-page.ts";
import type { BrowserSlot } from "./shared-browser.ts";

const ACTION_MS = 10_000;
/** Pages with frames that never load use all of it. */
const SNAPSHOT_MS = 5_000;
const PICTURE_MS = 15_000;
/** How long a page may go on loading after it can be read. */
const SETTLE_MS = 3_000;
/** A window that is not ready by then is closed. */
const ADOPT_MS = 5_000;
const MAX_URL = 4_000;
const MAX_PICTURE_HEIGHT = 8_000;
const PICTURE_WIDTH = 1_280;
const elementRef = /^(f\d+)?e\d+$/;

/** A page with everything shut that its tools do not need. */
interface GuardedPage {
  readonly page: Page;
  readonly cdp: CDPSession;
  /** What happened since it was last asked, for the model. */
  takeNotes(): string[];
}

const MAX_NOTES = 5;
const MAX_MESSAGE = 200;

/** The pages of one session, over its slot in a browser. Rejects with a `PerdureError` whose message is for the model. */
export class PagesOfSession {
  readonly #slot: BrowserSlot;
  readonly #settings: BrowserSettings;
  readonly #pages = new Map<number, GuardedPage>();
  /** What the model has not been told yet. */
  readonly #news: string[] = [];
  readonly #ended: () => void;
  egress: BrowserEgress;
  #last = 0;
  /** Pages that are being guarded. */
  #arriving = 0;
  #current: number | undefined;
  #closed = false;
  #opening: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(slot: BrowserSlot, egress: BrowserEgress, settings: BrowserSettings, ended: () => void) {
    this.#slot = slot;
    this.egress = egress;
    this.#settings = settings;
    this.#ended = ended;
    // Windows that pages open by themselves.
    slot.context.on("page", (page) => {
      this.#opening = Promise.allSettled([this.#opening, within(ADOPT_MS, this.#adopt(page), page)]);
    });
    slot.context.setDefaultTimeout(ACTION_MS);
    this.#touch();
  }

  get closed(): boolean {
    return this.#closed;
  }

  async open(url: string, options: CallOptions & { readonly newPage: boolean }): Promise<PageView> {
    const address = checkedUrl(url);
    const decision = this.egress.check?.(address);
    if (decision?.allowed === false) {
      throw new PerdureError(
        "not_allowed",
        `${decision.reason ?? "That address is not allowed."} Open another address.`,
      );
    }
    return await this.#call(options.signal, async () => {
      const wanted = options.newPage ? undefined : (options.page ?? this.#current);
      const id = wanted !== undefined && this.#pages.has(wanted) ? wanted : await this.#newPage();
      const guarded = this.#pageOf(id);
      try {
        await guarded.page.goto(address, { waitUntil: "domcontentloaded", timeout: this.#settings.navigationMs });
      } catch (thrown) {
        // After a refused address Chromium may carry the failure into the next one: a new page does not.
        await this.#forget(id);
        throw this.#failure(thrown, "The page could not be opened");
      }
      return await this.#view(id, await this.#tree(id));
    });
  }

  async snapshot(options: CallOptions): Promise<PageView> {
    return await this.#call(options.signal, async () => {
      const id = this.#idOf(options.page);
      return await this.#view(id, await this.#tree(id));
    });
  }

  async act(ref: string, action: PageAction, value: string | undefined, options: CallOptions): Promise<PageView> {
    if (!elementRef.test(ref)) {
      throw new PerdureError(
        "bad_input",
        `"${ref}" is not a ref. Refs are in the snapshot, such as "e12" in [ref=e12].`,
      );
    }
    const needsValue = action === "fill" || action === "press" || action === "select";
    if (needsValue && value === undefined) {
      throw new PerdureError(
        "bad_input",
        `\`${action}\` needs \`value\`${action === "press" ? ", the name of a key such as Enter" : ""}.`,
      );
    }
    return await this.#call(options.signal, async () => {
      const id = this.#idOf(options.page);
      const { page } = this.#pageOf(id);
      const element = page.locator(`aria-ref=${ref}`);
      const timeout = { timeout: ACTION_MS };
      try {
        if ((await element.count()) === 0)
          throw new PerdureError("bad_input", `There is no element ${ref} now. Take a new snapshot.`);
        if (action === "click") await element.click(timeout);
        else if (action === "hover") await element.hover(timeout);
        else if (action === "fill") await element.fill(value ?? "", timeout);
        else if (action === "press") await element.press(value ?? "", timeout);
        else await element.selectOption(value ?? "", timeout);
      } catch (thrown) {
        throw this.#failure(thrown, `\`${action}\` on ${ref} did not work`);
      }
      await this.#opening.catch(() => undefined);
      const now = this.#idOf(options.page);
      return await this.#view(now, await this.#tree(now));
    });
  }

  async read(format: ReadFormat, options: CallOptions): Promise<PageView> {
    return await this.#call(options.signal, async () => {
      const id = this.#idOf(options.page);
      const { maxChars } = this.#settings;
      const { text, length } = await readPage(this.#pageOf(id).cdp, format, maxChars);
      return await this.#view(
        id,
        text,
        length > text.length ? [`The page has more text than the ${text.length} characters here.`] : [],
      );
    });
  }

  async screenshot(full: boolean, options: CallOptions) {
    return await this.#file(options, async (page) => {
      const height = full ? await page.evaluate(() => document.documentElement.scrollHeight).catch(() => 0) : 0;
      // A page can claim any height.
      const clip = { x: 0, y: 0, width: PICTURE_WIDTH, height: MAX_PICTURE_HEIGHT };
      return await page.screenshot({
        ...{ type: "png", timeout: PICTURE_MS, fullPage: full },
        ...(Number(height) > MAX_PICTURE_HEIGHT && { clip }),
      });
    });
  }

  async pdf(options: CallOptions) {
    return await this.#file(
      options,
      async (page) => await page.pdf({ format: "A4", printBackground: true, pageRanges: "1-50" }),
    );
  }

  /** Closes one page, or all and the session. */
  async close(page: number | undefined): Promise<string> {
    if (page !== undefined) {
      const id = this.#idOf(page);
      await this.#forget(id);
      return `Page ${id} is closed.`;
    }
    if (!this.#closed) {
      this.#closed = true;
      clearTimeout(this.#idle);
      this.#pages.clear();
      await this.#slot.leave();
      this.#ended();
    }
    return "All pages are closed.";
  }

  async use(egress: BrowserEgress): Promise<void> {
    this.egress = egress;
    await this.#slot.use(egress);
  }

  async #file(options: CallOptions, make: (page: Page) => Promise<Uint8Array>) {
    return await this.#call(options.signal, async () => {
      const id = this.#idOf(options.page);
      const { page } = this.#pageOf(id);
      const bytes = await make(page);
      return { page: id, url: page.url(), bytes: new Uint8Array(bytes) };
    });
  }

  async #tree(id: number): Promise<string> {
    const { page, cdp } = this.#pageOf(id);
    await page.waitForLoadState("load", { timeout: SETTLE_MS }).catch(() => undefined);
    try {
      return await page.ariaSnapshot({ mode: "ai", timeout: SNAPSHOT_MS });
    } catch (thrown) {
      if (!this.#pages.has(id)) throw thrown;
      this.#news.push("The page is too large, or too busy, for a tree of its elements: this is its text.");
      return (await readPage(cdp, "text", this.#settings.maxChars)).text;
    }
  }

  async #view(id: number, content: string, notes: readonly string[] = []): Promise<PageView> {
    const guarded = this.#pageOf(id);
    const { maxChars } = this.#settings;
    const cut =
      content.length > maxChars
        ? [`The content was cut: ${content.length} characters, ${maxChars} shown. Use browser_read.`]
        : [];
    const others = [...this.#pages.keys()].filter((other) => other !== id);
    const open = others.length === 0 ? [] : [`Other open pages: ${others.join(", ")}.`];
    const title = (await guarded.page.title()).slice(0, 300);
    this.#current = id;
    return {
      ...{ page: id, url: guarded.page.url().slice(0, MAX_URL), title, content: content.slice(0, maxChars) },
      notes: [...this.#news.splice(0), ...guarded.takeNotes(), ...notes, ...cut, ...open],
    };
  }

  async #newPage(): Promise<number> {
    if (this.#pages.size >= this.#settings.maxPages) {
      const open = [...this.#pages.keys()].join(", ");
      throw new PerdureError(
        "limit",
        `${this.#pages.size} pages are already open (${open}). Close one, or open the address in one of them.`,
      );
    }
    const page = await this.#slot.context.newPage();
    await this.#opening;
    for (const [id, guarded] of this.#pages) if (guarded.page === page) return id;
    throw new PerdureError("call_failed", "The new page was closed at once. Try again.");
  }

  async #adopt(page: Page): Promise<void> {
    if (page.isClosed()) return;
    const refusal =
      this.#pages.size + this.#arriving >= this.#settings.maxPages
        ? "A window that the page opened was closed: there are too many."
        : isWebAddress(page.url())
          ? undefined
          : "A window that the page opened was closed: its address is not http or https.";
    if (refusal !== undefined) {
      this.#news.push(refusal);
      await page.close().catch(() => undefined);
      return;
    }
    const id = ++this.#last;
    this.#arriving += 1;
    try {
      this.#pages.set(id, await guardPage(page, this.#settings.responseBytes, (note) => this.#news.push(note)));
    } finally {
      this.#arriving -= 1;
    }
    this.#current ??= id;
    page.once("close", () => {
      this.#pages.delete(id);
      if (this.#current === id) this.#current = [...this.#pages.keys()].at(-1);
    });
  }

  async #forget(id: number): Promise<void> {
    const guarded = this.#pages.get(id);
    this.#pages.delete(id);
    if (this.#current === id) this.#current = [...this.#pages.keys()].at(-1);
    await guarded?.page.close().catch(() => undefined);
  }

  #idOf(page: number | undefined): number {
    const id = page ?? this.#current;
    if (id !== undefined && this.#pages.has(id)) return id;
    const news = this.#news.splice(0).join(" ");
    const open = [...this.#pages.keys()];
    const what =
      open.length === 0
        ? "No page is open. Use browser_open first."
        : `There is no page ${id}. Open pages: ${open.join(", ")}.`;
    throw new PerdureError("bad_input", [news, what].filter((text) => text !== "").join(" "));
  }

  #pageOf(id: number): GuardedPage {
    const found = this.#pages.get(id);
    if (found === undefined)
      throw new PerdureError("bad_state", [...this.#news.splice(0), "The page is closed. Open it again."].join(" "));
    return found;
  }

  /** Every call: counts as use, ends with its signal, and never shows more than a sentence of what Playwright says. */
  async #call<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new PerdureError("bad_state", "The browser session was closed. Open a page again.");
    signal?.throwIfAborted();
    this.#touch();
    try {
      return await untilAborted(work(), signal);
    } catch (thrown) {
      if (signal?.aborted === true) throw new PerdureError("call_failed", "The call was stopped.");
      throw this.#failure(thrown, "The browser could not do that");
    } finally {
      this.#touch();
    }
  }

  #failure(thrown: unknown, what: string): PerdureError {
    if (PerdureError.is(thrown)) return thrown;
    const text = errorText(thrown).split("\n")[0] ?? "";
    const news = this.#news.splice(0);
    if (/ERR_TUNNEL_CONNECTION_FAILED|ERR_PROXY|ERR_ABORTED|ERR_BLOCKED/.test(text) && news.length === 0) {
      news.push("It is not allowed, or does not answer, or is a download.");
    }
    const reason = /net::(ERR_\w+)|(Timeout \d+ms exceeded)/.exec(text);
    const short = reason?.[1] ?? reason?.[2] ?? text.replace(/^\w+\.\w+: /, "").slice(0, 200);
    return new PerdureError("call_failed", `${what}: ${short}. ${news.join(" ")}`.trim());
  }

  #touch(): void {
    clearTimeout(this.#idle);
    if (this.#closed) return;
    this.#idle = setTimeout(() => void this.close(undefined), this.#settings.idleMs);
    this.#idle.unref();
  }
}

async function within(ms: number, work: Promise<void>, page: Page): Promise<void> {
  const timer = setTimeout(() => void page.close().catch(() => undefined), ms);
  try {
    await work;
  } catch {
    // It was closed while it opened.
  } finally {
    clearTimeout(timer);
  }
}

function checkedUrl(text: string): string {
  const url = text.length <= MAX_URL ? URL.parse(text) : null;
  if (url === null)
    throw new PerdureError("bad_input", "`url` must be an absolute address, such as https://example.com/.");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new PerdureError("not_allowed", `Only http and https addresses can be opened, not "${url.protocol}".`);
  }
  if (url.username !== "" || url.password !== "")
    throw new PerdureError("not_allowed", "Addresses with a user name are not opened.");
  return url.href;
}

/** Whether the browser may show an address. What is empty or a frame's own document is harmless. */
function isWebAddress(url: string): boolean {
  return /^(https?:\/\/|about:(blank|srcdoc)$)/.test(url) || url === "";
}

/** Closes a page that is too large or goes where it may not, and says so. */
async function guardPage(page: Page, responseBytes: number, tell: (note: string) => void): Promise<GuardedPage> {
  const notes: string[] = [];
  const note = (text: string) => {
    if (notes.length < MAX_NOTES) notes.push(text);
  };
  const shut = (reason: string) => {
    tell(reason);
    void page.close().catch(() => undefined);
  };
  page.on("dialog", (dialog) => {
    note(`A dialog was dismissed. It said: ${JSON.stringify(dialog.message().slice(0, MAX_MESSAGE))}`);
    void dialog.dismiss().catch(() => undefined);
  });
  // Somebody listens, so Chromium opens nothing; nobody answers, so no file gets in.
  page.on("filechooser", () => note("The page asked for a file. Files cannot be given to pages."));
  page.on("download", (download) => {
    note("A download was refused.");
    void download.cancel().catch(() => undefined);
  });
  page.on("framenavigated", (frame) => {
    if (!isWebAddress(frame.url())) shut("A page was closed: it went to an address that is not http or https.");
  });
  page.on("crash", () => shut("A page was closed: it crashed."));

  const cdp = await page.context().newCDPSession(page);
  const received = new Map<string, number>();
  cdp.on("Network.dataReceived", ({ requestId, dataLength }) => {
    const bytes = (received.get(requestId) ?? 0) + dataLength;
    received.set(requestId, bytes);
    if (bytes > responseBytes) shut(`A page was closed: it loaded a response of more than ${responseBytes} bytes.`);
  });
  const forget = ({ requestId }: { requestId: string }) => void received.delete(requestId);
  cdp.on("Network.loadingFinished", forget);
  cdp.on("Network.loadingFailed", forget);
  // No buffers: nobody asks for the bodies.
  await cdp.send("Network.enable", { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
  await cdp.send("Network.setBypassServiceWorker", { bypass: true });
  return { page, cdp, takeNotes: () => notes.splice(0) };
}
