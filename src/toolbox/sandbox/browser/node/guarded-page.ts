import type { CDPSession, Page } from "playwright-core";

/** A page with everything shut that its tools do not need. */
export interface GuardedPage {
  readonly page: Page;
  readonly cdp: CDPSession;
  /** What happened since it was last asked, for the model. */
  takeNotes(): string[];
}

const MAX_NOTES = 5;
const MAX_MESSAGE = 200;

/** Whether the browser may show an address. What is empty or a frame's own document is harmless. */
export function isWebAddress(url: string): boolean {
  return /^(https?:\/\/|about:(blank|srcdoc)$)/.test(url) || url === "";
}

/** Closes a page that is too large or goes where it may not, and says so. */
export async function guardPage(page: Page, responseBytes: number, tell: (note: string) => void): Promise<GuardedPage> {
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
