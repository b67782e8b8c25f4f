import { type ReactNode, Suspense, use } from "react";
import type { Info } from "../../contract.ts";

/** Asked once: who answers does not change while the server runs. */
const info = askInfo();

/** Who answers, and for the built-in guide how to get a model instead. Empty while that is not known. */
export function ModelNote(): ReactNode {
  return (
    <p className="model-note">
      <Suspense>
        <Known />
      </Suspense>
    </p>
  );
}

function Known(): ReactNode {
  const known = use(info);
  if (known === undefined) return null;
  if (!known.builtIn) return <span data-testid="model">{known.model}</span>;
  return (
    <span data-testid="model">
      {known.model}, no model.
      <span className="model-hint">
        {" "}
        For a real one: <code>OPENAI_API_KEY=… npm start</code>
      </span>
    </span>
  );
}

async function askInfo(): Promise<Info | undefined> {
  try {
    const response = await fetch("/info");
    return response.ok ? ((await response.json()) as Info) : undefined;
  } catch {
    return undefined;
  }
}
