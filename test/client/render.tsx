import "../clients/dom.ts";
import { act, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { type AgentClient, useAgent, type UseAgentOptions } from "../../src/client/react.ts";
import { addressOf, atEnd, QUICK } from "../clients/harness.ts";
import type { Count, Counter } from "./harness.ts";

type Options = UseAgentOptions<Count>;

async function acting(work: () => void): Promise<void> {
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  flags.IS_REACT_ACT_ENVIRONMENT = true;
  try {
    await act(async () => work());
  } finally {
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  }
}

/** Mounts a component that calls our `useAgent`, in StrictMode; unmounted at the end of the test. */
export async function render(host: { readonly port: number }, options: Options) {
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  let latest: AgentClient<Counter> | undefined;
  function Page({ options: given }: { options: Options }): ReactNode {
    latest = useAgent<Counter>({ ...QUICK, ...given, host: addressOf(host) });
    return latest.state === undefined ? "no state" : JSON.stringify(latest.state);
  }
  const show = (given: Options) =>
    acting(() =>
      root.render(
        <StrictMode>
          <Page options={given} />
        </StrictMode>,
      ),
    );
  atEnd(async () => {
    await acting(() => root.unmount());
    container.remove();
  });
  await show(options);
  return {
    agent(): AgentClient<Counter> {
      if (latest === undefined) throw new Error("The hook has not returned yet.");
      return latest;
    },
    text: () => container.textContent,
    update: show,
  };
}
