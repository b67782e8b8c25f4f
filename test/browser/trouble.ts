import type { Page } from "playwright-core";

/** What went wrong in a tab and was not announced by its test. */
export interface Trouble {
  /** From now on this kind of trouble is expected in the tab, because the test causes it. */
  expect(kind: RegExp): void;
  /** All that was not expected, oldest first. */
  list(): string[];
}

/** What the browser says while a host is gone: its console names each request and socket that failed. */
export const LOST_CONNECTION =
  /net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED)|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|INTERNET_DISCONNECTED|NETWORK_CHANGED)|WebSocket connection to .* failed/;

/** Watches a tab from its first line on: console, uncaught errors, requests that failed or were refused. */
export function watchTrouble(page: Page): Trouble {
  const seen: string[] = [];
  const expected: RegExp[] = [];
  const add = (what: string) => {
    if (!expected.some((kind) => kind.test(what))) seen.push(what);
  };
  page.on("console", (message) => {
    const type = message.type();
    if (type === "error" || type === "warning") add(`console ${type}: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => add(`uncaught: ${error.stack ?? error.message}`));
  page.on("crash", () => add("the tab crashed"));
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "no reason";
    // A tab that is left or loaded anew gives up what it was loading.
    if (reason !== "net::ERR_ABORTED") add(`request failed: ${request.url()} ${reason}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) add(`refused: ${response.status()} ${response.url()}`);
  });
  return { expect: (kind) => void expected.push(kind), list: () => [...seen] };
}
