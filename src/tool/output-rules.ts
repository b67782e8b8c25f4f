import type { ToolSet } from "ai";
import type { OutputRules, OutputSubject } from "../context/superseded.ts";
import { isRecord } from "../base/json.ts";
import { type ToolPart, toolName } from "../message/types.ts";
import { toolNamed, toolOptionsOf } from "./define.ts";
import { canonicalJson } from "./digest.ts";

/** What tools say of their outputs. A tool that is gone says nothing. */
export function outputRules(tools: ToolSet): OutputRules {
  const optionsOf = (name: string) => toolOptionsOf(toolNamed(tools, name));
  return {
    keepAlways: (name) => optionsOf(name).keep === "always",
    subjects: (part) => subjectsOf(part, optionsOf(toolName(part)).supersedes),
  };
}

type Supersedes = ReturnType<typeof toolOptionsOf>["supersedes"];

/** What an output is about: what its tool says, or else its input. */
function subjectsOf({ input, output }: ToolPart, supersedes: Supersedes): readonly OutputSubject[] {
  try {
    if (supersedes === undefined) return [subjectOf(input)];
    const said: unknown = supersedes(input, output);
    const list: readonly unknown[] = Array.isArray(said) ? said : [said];
    return list.every(isSubject) ? list : [];
  } catch {
    // It is only about what could be left out.
    return [];
  }
}

/** By inputs of calls that have an output: those do not change, and each turn looks at all that are shown. */
const inputs = new WeakMap<object, string>();

function subjectOf(input: unknown): string {
  if (!isRecord(input)) return canonicalJson(input);
  let subject = inputs.get(input);
  if (subject === undefined) inputs.set(input, (subject = canonicalJson(input)));
  return subject;
}

function isSubject(said: unknown): said is OutputSubject {
  if (typeof said === "string") return true;
  return isRecord(said) && typeof said.of === "string" && typeof said.piece === "string";
}
