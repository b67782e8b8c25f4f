import "./dom.ts";
import { useAgent, type UseAgentOptions } from "agents/react";
import { act, Component, type ReactNode, StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { addressOf, atEnd, eventually, QUICK } from "./harness.ts";

/** What `useAgent` returns. */
export type HookAgent<State = unknown> = ReturnType<typeof useAgent<State>>;
export type HookOptions<State = unknown> = Omit<UseAgentOptions<State>, "host">;

/** A mounted component that uses the hook. */
export interface Rendered<State = unknown> {
  /** What the hook returned last. */
  agent(): HookAgent<State>;
  /** The state on the page. */
  text(): string;
  /** How often the component was rendered. */
  renders(): number;
  update(options: HookOptions<State>): Promise<void>;
  unmount(): Promise<void>;
}

class Boundary extends Component<{ children: ReactNode }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }
  override render(): ReactNode {
    return this.state.error === undefined ? this.props.children : `error: ${this.state.error.message}`;
  }
}

/**
 * React flushes updates by itself, as in a browser; only mounting, updating and unmounting run inside `act`. Were the
 * flag always on, every frame from the socket would be an update outside of `act`.
 */
async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

/** Mounts a component that calls `useAgent`; it is unmounted at the end of the test. */
export async function render<State = unknown>(
  host: { readonly port: number },
  options: HookOptions<State>,
  { strict = false } = {},
): Promise<Rendered<State>> {
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  let latest: HookAgent<State> | undefined;
  let renders = 0;

  function Page({ options }: { options: HookOptions<State> }): ReactNode {
    const agent = useAgent<State>({ ...QUICK, ...options, host: addressOf(host) });
    latest = agent;
    renders++;
    return agent.state === undefined ? "no state" : JSON.stringify(agent.state);
  }
  const page = (options: HookOptions<State>) => {
    const tree = (
      <Boundary>
        <Suspense fallback="suspended">
          <Page options={options} />
        </Suspense>
      </Boundary>
    );
    return strict ? <StrictMode>{tree}</StrictMode> : tree;
  };

  let mounted = true;
  const unmount = async () => {
    if (!mounted) return;
    mounted = false;
    await acting(() => root.unmount());
    container.remove();
  };
  atEnd(unmount);
  await acting(() => root.render(page(options)));
  return {
    agent() {
      if (latest === undefined) throw new Error("The hook has not returned yet.");
      return latest;
    },
    text: () => container.textContent,
    renders: () => renders,
    update: (next) => acting(() => root.render(page(next))),
    unmount,
  };
}

/** Mounts and waits until the hook knows where it is. */
export async function rendered<State = unknown>(
  host: { readonly port: number },
  options: HookOptions<State>,
): Promise<Rendered<State>> {
  const page = await render<State>(host, options);
  await eventually(() => {
    if (!page.agent().identified) throw new Error("not identified");
  });
  return page;
}
