// A host, and pages in a window, for programs that use the published clients as their documentation does.
import "../../clients/dom.ts";
import { useAgent } from "agents/react";
import type { UIMessage } from "ai";
import { act, type ReactNode, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { addressOf, atEnd, QUICK } from "../../clients/harness.ts";
import { until } from "../../support/until.ts";

/** A page of an app. */
export interface Page {
  readonly root: HTMLElement;
  text(): string;
  /** Waits until the page shows this. */
  shows(text: string): Promise<void>;
  /** Waits for a button that says this, and clicks it. */
  click(label: string): Promise<void>;
  close(): Promise<void>;
}

/** React flushes by itself, as in a browser; only mounting and unmounting run inside `act`. */
async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

/** Opens a page. It is closed at the end of the test. */
export async function open(app: ReactNode): Promise<Page> {
  const root = document.createElement("div");
  document.body.append(root);
  const react = createRoot(root);
  let isOpen = true;
  const page: Page = {
    root,
    text: () => root.textContent,
    shows: async (text) =>
      void (await until(() => page.text().includes(text), `"${text}" on a page that shows "${page.text()}"`)),
    async click(label) {
      const named = () => [...root.querySelectorAll("button")].find(({ textContent }) => textContent === label);
      (await until(named, `a button "${label}"`)).click();
    },
    async close() {
      if (!isOpen) return;
      isOpen = false;
      await acting(() => react.unmount());
      root.remove();
    },
  };
  atEnd(() => page.close());
  let isThere = false;
  // React may render a page some time before it shows it, and hooks listen only from then on.
  function Shown(): ReactNode {
    useEffect(() => {
      isThere = true;
    }, []);
    return null;
  }
  const tree = (
    <Suspense fallback="loading">
      {app}
      <Shown />
    </Suspense>
  );
  await acting(() => react.render(tree));
  await until(() => isThere, "a page");
  return page;
}

/** `useAgent` as a page calls it that was loaded from the host: tests have no such page, so they say where that is. */
export function useTheAgent(host: { readonly port: number }, agent = "ChatAgent") {
  return useAgent({ ...QUICK, agent, host: addressOf(host) });
}

/** What a test does with a hook: the component gives it, the test waits for it. */
export interface Handle<T> {
  current: T | undefined;
  get(): T;
  /** Waits until it is like this. */
  when(check: (value: T) => boolean): Promise<T>;
}

export function handle<T>(): Handle<T> {
  const own: Handle<T> = {
    current: undefined,
    get() {
      if (own.current === undefined) throw new Error("The component was not rendered yet.");
      return own.current;
    },
    when: (check) =>
      until(() => (own.current !== undefined && check(own.current) ? own.current : undefined), "a state of the hook"),
  };
  return own;
}

/** Messages, one line each. */
export function linesOf(messages: readonly UIMessage[]): string[] {
  return messages.map(({ role, parts }) => {
    const texts = parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : []));
    return `${role}: ${texts.join(" ")}`;
  });
}

/** What is stored, over HTTP. */
export async function stored(host: { readonly url: string }, agent = "chat-agent"): Promise<UIMessage[]> {
  return (await (await fetch(`${host.url}/agents/${agent}/default/get-messages`)).json()) as UIMessage[];
}
