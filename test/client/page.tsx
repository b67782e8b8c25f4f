import "../clients/dom.ts";
import { act, Component, type ReactNode, StrictMode, Suspense, useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import { expect } from "vitest";
import {
  type AgentClient,
  useAgent,
  useAgentChat,
  type UseAgentChat,
  type UseAgentChatOptions,
  type UseAgentOptions,
} from "../../src/client/react.ts";
import type { PlainSocket } from "../../src/client/reconnecting-socket.ts";
import { newLine } from "../chat-client/task-socket.ts";
import { addressOf, atEnd, eventually, QUICK } from "../clients/harness.ts";
import { toLine } from "./to-line.ts";

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

async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

export interface PageOptions extends Partial<Omit<UseAgentChatOptions, "agent">> {
  readonly strict?: boolean;
  /** How many components use the chat. */
  readonly hooks?: number;
  readonly connection?: Partial<UseAgentOptions>;
}

/** A page with our hooks on it, on a line that can be cut. */
export async function openPage(host: { readonly port: number }, options: PageOptions = {}) {
  const { strict = false, hooks = 1, connection, ...chatOptions } = options;
  const line = newLine();
  let losing = false;
  const Base = line.Socket as new (url: string, protocols?: string | string[]) => EventTarget & PlainSocket;
  class LossySocket extends Base {
    override send(data: string): void {
      if (!losing) super.send(data);
    }
  }
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  const chats: UseAgentChat[] = [];
  const shown: string[][] = [];
  let agent: AgentClient | undefined;
  let error: Error | undefined;

  function Chat({ agent: on, index }: { agent: AgentClient; index: number }): ReactNode {
    const chat = useAgentChat({ throttle: false, ...chatOptions, agent: on });
    // What was rendered and thrown away, because something else came first, is no page that anybody can use.
    useLayoutEffect(() => void (chats[index] = chat));
    shown.push(chat.messages.map(toLine));
    return chat.messages.map(toLine).join(" | ");
  }
  function Page(): ReactNode {
    agent = useAgent({
      ...QUICK,
      agent: "Talk",
      name: "x",
      WebSocket: LossySocket,
      host: addressOf(host),
      ...connection,
    });
    return Array.from({ length: hooks }, (_, index) => <Chat key={index} index={index} agent={agent as AgentClient} />);
  }
  const page = (
    <Boundary failed={(thrown) => void (error = thrown)}>
      <Suspense fallback="loading">
        <Page />
      </Suspense>
    </Boundary>
  );
  const unmount = async () => {
    await acting(() => root.unmount());
    container.remove();
  };
  atEnd(unmount);
  await acting(() => root.render(strict ? <StrictMode>{page}</StrictMode> : page));
  const chat = (index = 0): UseAgentChat => {
    const found = chats[index];
    if (found === undefined) throw error ?? new Error("The hook has not returned yet.");
    return found;
  };
  await eventually(() => (error === undefined ? chat(hooks - 1) : undefined));
  return {
    line,
    /** What the page sends from now on is lost on its way. */
    lose: (on: boolean) => void (losing = on),
    chat,
    /** The messages of every render. */
    shown,
    agent: () => agent,
    error: () => error,
    text: () => container.textContent,
    lines: (index = 0) => chat(index).messages.map(toLine),
    shows: (lines: string[], status = "ready", index = 0) =>
      eventually(() =>
        expect({ lines: chat(index).messages.map(toLine), status: chat(index).status }).toEqual({ lines, status }),
      ),
    unmount,
  };
}
