import type * as Ai from "ai";
import { PerdureError } from "./error.ts";

/** What version 7 of the AI SDK has and version 6 lacks. */
const NEWER = [
  "experimental_streamLanguageModelCall",
  "experimental_filterActiveTools",
  "toUIMessageChunk",
  "createDownload",
] as const satisfies readonly (keyof typeof Ai)[];

let loaded: typeof Ai | undefined;
let loading: Promise<typeof Ai> | undefined;

/**
 * The AI SDK, once {@link loadAiSdk} is through: it takes half of the time that a process needs to start, and agents without a chat
 * do not need it. A chat agent has it before its `onStart`. @throws PerdureError `bad_state` before that
 */
export function aiSdk(): typeof Ai {
  if (loaded !== undefined) return loaded;
  throw new PerdureError("bad_state", "The AI SDK is not loaded yet. Wait for loadAiSdk() first.");
}

/** Whether {@link aiSdk} may be called. */
export function hasAiSdk(): boolean {
  return loaded !== undefined;
}

/** Loads the AI SDK, once. @throws PerdureError `bad_config` for version 6; the import's error when it is not installed */
export function loadAiSdk(): Promise<typeof Ai> {
  // Not kept when it fails: what is missing may be there the next time.
  return (loading ??= load().catch((thrown: unknown) => {
    loading = undefined;
    throw thrown;
  }));
}

async function load(): Promise<typeof Ai> {
  const found = await import("ai");
  const missing = NEWER.find((name) => !Object.hasOwn(found, name));
  if (missing !== undefined) {
    throw new PerdureError(
      "bad_config",
      `Perdure needs version 7 of the AI SDK, but the installed package "ai" has no ${missing}. Version 6 is not supported: run npm install ai@7.`,
    );
  }
  return (loaded = found);
}
