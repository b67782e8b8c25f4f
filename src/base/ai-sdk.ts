import * as ai from "ai";
import { PerdureError } from "./error.ts";

/*
 * What version 7 of the AI SDK has and version 6 lacks. Read from the whole module: a missing named import would end the program
 * with a useless error.
 */
const newer: Partial<
  Pick<
    typeof ai,
    "experimental_streamLanguageModelCall" | "experimental_filterActiveTools" | "toUIMessageChunk" | "createDownload"
  >
> = ai;

function need<NAME extends keyof typeof newer>(name: NAME): NonNullable<(typeof newer)[NAME]> {
  const found = Object.hasOwn(newer, name) ? newer[name] : undefined;
  if (found !== undefined) return found;
  throw new PerdureError(
    "bad_config",
    `Perdure needs version 7 of the AI SDK, but the installed package "ai" has no ${name}. Version 6 is not supported: run npm install ai@7.`,
  );
}

/** One call of a model, as a stream. */
export const streamCall = need("experimental_streamLanguageModelCall");
/** The tools that a step may use. */
export const filterActiveTools = need("experimental_filterActiveTools");
/** A part of a stream, as clients get it. */
export const toUIMessageChunk = need("toUIMessageChunk");
/** Loads files of prompts. */
export const createDownload = need("createDownload");
