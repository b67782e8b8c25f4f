import { setTimeout } from "node:timers/promises";
import { inspect, isDeepStrictEqual } from "node:util";
import type { Locator, Page } from "playwright-core";
import { PATIENCE_MS } from "../support/until.ts";
import { LOST_CONNECTION, type Trouble } from "./trouble.ts";

export const LOOK_EVERY_MS = 50;

/** A message as the page shows it. */
export interface ShownMessage {
  readonly id: string;
  readonly role: string;
  /** Its text without buttons, cards and reasoning. */
  readonly text: string;
}

/** A tab with the app in it, and what a user does there. */
export class Tab {
  readonly page: Page;
  readonly origin: string;
  readonly trouble: Trouble;

  constructor(page: Page, origin: string, trouble: Trouble) {
    this.page = page;
    this.origin = origin;
    this.trouble = trouble;
    page.setDefaultTimeout(PATIENCE_MS);
  }

  /** The element with this test id. */
  at(id: string): Locator {
    return this.page.getByTestId(id);
  }

  /** Loads an address of the app and waits until one can write. */
  async open(path: string, waitsFor = "composer"): Promise<void> {
    await this.page.goto(this.origin + path);
    await this.at(waitsFor).waitFor();
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.at("composer").waitFor();
  }

  /** The test is about to take the host or the connection away: what the browser says about that is no trouble. */
  expectsLoss(): void {
    this.trouble.expect(LOST_CONNECTION);
  }

  /** Writes and sends. Does not wait for the answer. */
  async send(text: string): Promise<void> {
    await this.at("composer-input").fill(text);
    await this.at("send").click();
  }

  /** Sends and waits for the whole answer. */
  async ask(text: string): Promise<void> {
    const before = await this.answers().count();
    await this.send(text);
    await this.sees(() => this.answers().count(), before + 1);
    await this.settles();
  }

  /** Waits until nothing is under way. */
  async settles(): Promise<void> {
    await this.at("stop").waitFor({ state: "hidden" });
  }

  /** Waits until `look` returns `what`. @throws when it does not */
  async sees<T>(look: () => Promise<T>, what: T): Promise<void> {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const seen = await look();
      if (isDeepStrictEqual(seen, what)) return;
      if (Date.now() > end) throw new Error(`Expected ${inspect(what)}, but saw ${inspect(seen)}`);
      await setTimeout(LOOK_EVERY_MS);
    }
  }

  answers(): Locator {
    return this.page.locator('[data-testid="message"][data-role="assistant"]');
  }

  lastAnswer(): Locator {
    return this.answers().last();
  }

  /** The id of the conversation that is shown, also when a helper of it is. */
  conversation(): string {
    return new URL(this.page.url()).pathname.split("/")[2] ?? "";
  }

  /** The card of the helper with this name, in any state or in one. */
  run(name: string, state?: string): Locator {
    const card = `[data-testid="run"]${state === undefined ? "" : `[data-state="${state}"]`}`;
    return this.page.locator(card).filter({ has: this.page.getByRole("heading", { name, exact: true }) });
  }

  /** All messages that are shown, in order. */
  async messages(): Promise<ShownMessage[]> {
    return this.at("message").evaluateAll((elements) =>
      elements.map((element) => ({
        id: element.getAttribute("data-id") ?? "",
        role: element.getAttribute("data-role") ?? "",
        text: [...element.querySelectorAll(".message-parts > .markdown, .said > :is(p, .markdown)")]
          .map((text) => text.textContent)
          .join("\n"),
      })),
    );
  }

  /** The text of the last answer; empty when there is none. */
  async answerText(): Promise<string> {
    return (await this.messages()).findLast(({ role }) => role === "assistant")?.text ?? "";
  }

  /** The text of the last message. */
  async lastText(): Promise<string> {
    return (await this.messages()).at(-1)?.text ?? "";
  }
}
