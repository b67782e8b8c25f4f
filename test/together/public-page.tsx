import "../clients/dom.ts";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";
import { act, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { expect } from "vitest";
import { toLine } from "../chat-client/harness.tsx";
import { type Line, newLine } from "../chat-client/task-socket.ts";
import { addressOf, atEnd, eventually, QUICK } from "../clients/harness.ts";

type Chat = ReturnType<typeof useAgentChat>;
export type Runs = ReturnType<typeof useAgentToolEvents>;
export type Run = Runs["runsById"][string];

/** A page that shows a conversation and the runs of its children. */
export interface RunsPage {
  call(method: string, ...args: unknown[]): Promise<unknown>;
  chat(): Chat;
  runs(): Runs;
  /** All runs: those of tool calls by order, then the others. */
  list(): Run[];
  /** The first of them. */
  run(): Run;
  readonly line: Line;
  /** The runs, one line each, as every render showed them. */
  readonly views: readonly (readonly string[])[];
  /** Waits until the runs are shown like this. */
  shows(...lines: readonly string[]): Promise<void>;
  /** Waits until the answer is there and nothing is under way. */
  settles(): Promise<void>;
  unmount(): Promise<void>;
}

async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

/** Opens a page. No render may have shown less of a run than one before it, or a tool call twice. */
export async function openPage(
  host: { readonly port: number },
  { name = "x", strict = false }: { readonly name?: string; readonly strict?: boolean } = {},
): Promise<RunsPage> {
  const line = newLine();
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  const views: string[][] = [];
  const problems: string[] = [];
  const texts = new Map<string, string>();
  let latest: { call: RunsPage["call"]; chat: Chat; runs: Runs } | undefined;

  function Page(): ReactNode {
    const agent = useAgent({
      ...QUICK,
      agent: "Parent",
      name,
      host: addressOf(host),
      protocol: "ws",
      WebSocket: line.Socket,
    });
    const runs = useAgentToolEvents({ agent });
    const chat = useAgentChat({ agent, getInitialMessages: null });
    latest = { call: (method, ...args) => agent.call(method, args), chat, runs };
    views.push(listOf(runs).map(toRunLine));
    for (const run of Object.values(runs.runsById)) problems.push(...problemsOf(run, texts));
    return null;
  }

  let mounted = true;
  const unmount = async () => {
    if (!mounted) return;
    mounted = false;
    await acting(() => root.unmount());
    container.remove();
    expect.soft(problems).toEqual([]);
  };
  atEnd(unmount);
  await acting(() =>
    root.render(
      strict ? (
        <StrictMode>
          <Page />
        </StrictMode>
      ) : (
        <Page />
      ),
    ),
  );
  const now = () => {
    if (latest === undefined) throw new Error("The hooks have not returned yet.");
    return latest;
  };
  const page: RunsPage = {
    call: (method, ...args) => now().call(method, ...args),
    chat: () => now().chat,
    runs: () => now().runs,
    list: () => listOf(now().runs),
    run() {
      const [first] = page.list();
      if (first === undefined) throw new Error("No run is shown.");
      return first;
    },
    line,
    views,
    shows: (...lines) => eventually(() => expect(page.list().map(toRunLine)).toEqual(lines)),
    settles: () =>
      eventually(() => {
        const { messages, status } = page.chat();
        expect(messages.at(-1)?.parts.at(-1)).toMatchObject({ type: "text", text: "Done." });
        expect(status).toBe("ready");
      }),
    unmount,
  };
  await eventually(() => expect(line.opens).toBeGreaterThan(0));
  return page;
}

function listOf({ runsByToolCallId, unboundRuns }: Runs): Run[] {
  return [...Object.values(runsByToolCallId).flat(), ...unboundRuns];
}

/** A run in a line: `running: [search output-available ["a"]] one two`. */
export function toRunLine({ runId, status, parts }: Run): string {
  const said = parts.filter(({ type }) => !type.startsWith("data-agent-"));
  const line = toLine({ id: runId, role: "assistant", parts: said as Parameters<typeof toLine>[0]["parts"] });
  return line.replace(/^assistant:/, `${status}:`);
}

/** What two pages must show alike. Each hears of progress at its own time, and one that comes later of none. */
export function alike(page: RunsPage): unknown {
  const { runsById, runsByToolCallId, unboundRuns } = page.runs();
  const text = JSON.stringify({ runsById, runsByToolCallId, unboundRuns }, (key, value: unknown) =>
    key === "progress" ? undefined : value,
  );
  return JSON.parse(text);
}

/** Waits until a page shows the runs exactly as another does. */
export function same(page: RunsPage, as: RunsPage): Promise<void> {
  return eventually(() => expect(alike(page)).toEqual(alike(as)));
}

function problemsOf({ runId, parts }: Run, texts: Map<string, string>): string[] {
  const problems: string[] = [];
  const text = parts.map((part) => ("text" in part ? String(part.text) : "")).join("");
  const before = texts.get(runId) ?? "";
  if (!text.startsWith(before)) problems.push(`"${before}" became "${text}"`);
  texts.set(runId, text);
  const calls = parts.flatMap((part) => ("toolCallId" in part ? [String(part.toolCallId)] : []));
  if (new Set(calls).size < calls.length) problems.push(`a tool call twice: ${calls.join()}`);
  return problems;
}
