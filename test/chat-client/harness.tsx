import "../clients/dom.ts";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import type { UIMessage } from "ai";
import { act, Component, type ReactNode, StrictMode, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { expect } from "vitest";
import { atEnd, eventually, QUICK } from "../clients/harness.ts";
import { newLine, type Line } from "./task-socket.ts";

export type Chat = ReturnType<typeof useAgentChat>;
export type ChatOptions = Partial<Omit<Parameters<typeof useAgentChat>[0], "agent">>;
export type TurnEnd = Parameters<NonNullable<ChatOptions["onTurnEnd"]>>[0];

/** What one render showed. */
export interface View {
  readonly status: Chat["status"];
  readonly lines: readonly string[];
  readonly isServerStreaming: boolean;
  readonly isStreaming: boolean;
  readonly isRecovering: boolean;
  readonly isToolContinuation: boolean;
  readonly error: string | undefined;
}

export interface TabOptions extends ChatOptions {
  readonly agent?: string;
  readonly name?: string;
  readonly query?: Record<string, string>;
  /** The way from the agent to one of its children. */
  readonly sub?: { agent: string; name: string }[];
  /** React's StrictMode: everything is mounted twice. */
  readonly strict?: boolean;
  /** So many more answers than questions may be shown while the tab streams (see `client-tools.test.tsx`). */
  readonly stray?: number;
}

/** A page with the hook on it. */
export interface Tab {
  /** What the hook returned last. */
  chat(): Chat;
  /** Every render, oldest first. */
  readonly views: readonly View[];
  view(): View;
  readonly line: Line;
  /** What `onTurnEnd` was told. */
  readonly ends: readonly TurnEnd[];
  /** The messages, one line each. */
  lines(): readonly string[];
  send(text: string, options?: Parameters<Chat["sendMessage"]>[1]): void;
  /** Waits until the page shows this, with nothing under way. */
  settles(lines: readonly string[], status?: Chat["status"]): Promise<void>;
  waitFor(check: (view: View) => boolean): Promise<void>;
  /**
   * Waits until the page is without a connection, on a line that is cut or with a host that is down. What it shows
   * then is up to the client: the public hook has an error until the connection is back, ours goes on as it was.
   */
  lost(): Promise<void>;
  /** Waits until the page shows exactly what is stored, ids and states and all. */
  matches(agent: { stored(): Promise<readonly unknown[]> }): Promise<void>;
  unmount(): Promise<void>;
}

class Boundary extends Component<{ children: ReactNode; failed: (error: Error) => void }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }
  override componentDidCatch(error: Error): void {
    this.props.failed(error);
  }
  override render(): ReactNode {
    return this.state.error === undefined ? this.props.children : "failed";
  }
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

let loads = 0;

/**
 * The hook keeps fetched messages for all components of a page, by address. Each tab is a page of its own, so each
 * gets its own way to write the same address.
 */
function addressOfTab(port: number): string {
  return `127.0.0.${"0".repeat(loads++ % 200)}1:${port}`;
}

/** Opens a tab. It is closed at the end of the test, and then no render may have shown a message twice. */
export async function openTab(host: { readonly port: number }, options: TabOptions = {}): Promise<Tab> {
  const { agent: agentName = "Talk", name = "x", query, sub, strict = false, stray = 0, ...chatOptions } = options;
  const line = newLine();
  const address = addressOfTab(host.port);
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  const views: View[] = [];
  const ends: TurnEnd[] = [];
  const problems: string[] = [];
  let latest: Chat | undefined;
  let listens = false;

  function Page(): ReactNode {
    const agent = useAgent({
      ...QUICK,
      agent: agentName,
      name,
      host: address,
      protocol: "ws",
      ...(query !== undefined && { query }),
      ...(sub !== undefined && { sub }),
      WebSocket: line.Socket,
    });
    const chat = useAgentChat({
      throttle: false,
      ...chatOptions,
      agent,
      onTurnEnd(end) {
        ends.push(end);
        options.onTurnEnd?.(end);
      },
    });
    latest = chat;
    views.push(toView(chat));
    problems.push(...problemsOf(chat.messages, stray));
    // Behind the effects of the hooks.
    useEffect(() => {
      listens = true;
    }, []);
    return null;
  }

  let mounted = true;
  const unmount = async () => {
    if (!mounted) return;
    mounted = false;
    await acting(() => root.unmount());
    container.remove();
    // Soft: the other tabs and the host are to be closed too.
    expect.soft(problems).toEqual([]);
  };
  atEnd(unmount);
  const page = (
    <Boundary failed={(error) => problems.push(String(error))}>
      <Suspense fallback="loading">
        <Page />
      </Suspense>
    </Boundary>
  );
  await acting(() => root.render(strict ? <StrictMode>{page}</StrictMode> : page));
  const tab: Tab = {
    chat() {
      if (latest === undefined) throw new Error(`The hook has not returned yet. ${problems.join("; ")}`);
      return latest;
    },
    views,
    view: () => toView(tab.chat()),
    line,
    ends,
    lines: () => tab.view().lines,
    send: (text, sendOptions) => void tab.chat().sendMessage({ text }, sendOptions),
    settles: (lines, status = "ready") =>
      eventually(() => {
        const { error: _error, isStreaming: _streaming, ...view } = tab.view();
        const idle = { isServerStreaming: false, isToolContinuation: false, isRecovering: false };
        expect(view).toEqual({ lines, status, ...idle });
      }),
    waitFor: (check) => eventually(() => expect(check(tab.view()), JSON.stringify(tab.view())).toBe(true)),
    lost: () => eventually(() => expect(line.closes, "connections lost").toBe(line.opens)),
    matches: (agent) => eventually(async () => expect(tab.chat().messages).toEqual(await agent.stored())),
    unmount,
  };
  // The hook listens to the agent from its effects on. Who sends before that gets ahead of it, which nobody's hand does,
  // and has the answer protected against all that is told later.
  await eventually(() => expect(listens, `the page is there. ${problems.join("; ")}`).toBe(true));
  return tab;
}

/** Opens a tab and waits until its question for a stream is answered. */
export async function readyTab(host: { readonly port: number }, options: TabOptions = {}): Promise<Tab> {
  const tab = await openTab(host, options);
  await eventually(() =>
    expect(tab.line.received.some(({ type }) => type === "cf_agent_stream_resume_none")).toBe(true),
  );
  return tab;
}

function toView(chat: Chat): View {
  return {
    status: chat.status,
    lines: chat.messages.map(toLine),
    isServerStreaming: chat.isServerStreaming,
    isStreaming: chat.isStreaming,
    isRecovering: chat.isRecovering,
    isToolContinuation: chat.isToolContinuation,
    error: chat.error?.message,
  };
}

/** A message in a line: `user: hi`, `assistant: (thought) text [tool:state output]`. */
export function toLine(message: UIMessage): string {
  const parts = message.parts.map((part) => {
    if (part.type === "text") return part.text;
    if (part.type === "reasoning") return `(${part.text})`;
    if (part.type === "step-start") return "";
    if ("toolCallId" in part) {
      const name = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
      const end =
        part.state === "output-error" ? part.errorText : part.state === "output-available" ? part.output : undefined;
      return `[${name} ${part.state}${end === undefined ? "" : ` ${JSON.stringify(end)}`}]`;
    }
    if ("data" in part) return `{${part.type} ${JSON.stringify(part.data)}}`;
    return `<${part.type}>`;
  });
  return `${message.role}: ${parts.filter((text) => text !== "").join(" ")}`;
}

/** No id, no tool call and no answer stands there twice. */
function problemsOf(messages: readonly UIMessage[], stray: number): string[] {
  const shown = messages.map((message) => `${message.id} ${toLine(message)}`).join(" | ");
  const problems: string[] = [];
  if (new Set(messages.map(({ id }) => id)).size < messages.length) problems.push(`an id twice: ${shown}`);
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])),
  );
  if (new Set(calls).size < calls.length) problems.push(`a tool call twice: ${shown}`);
  const questions = messages.filter(({ role }) => role === "user").length;
  const answers = messages.filter(({ role }) => role === "assistant").length;
  if (answers > questions + stray) problems.push(`two answers to one message: ${shown}`);
  return problems;
}
