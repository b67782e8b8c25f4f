import type { PromptToolOutput } from "./model-types.ts";

/** What a tool brought, as the guide reads it. */
export interface Said {
  readonly toolName: string;
  /** All of it as text. */
  readonly text: string;
  /** It did not work, and the text says why. */
  readonly isBad: boolean;
  /** The user said no. */
  readonly isDenied: boolean;
  /** A field of the result as text; empty when it is not there. */
  field(name: string): string;
}

export function readOutput(toolName: string, output: PromptToolOutput): Said {
  const value: unknown = "value" in output ? output.value : undefined;
  const field = (name: string): string => {
    const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
    return found === undefined || found === null ? "" : asText(found);
  };
  const error = field("error");
  return {
    toolName,
    text: error !== "" ? error : output.type === "content" ? output.value.map(asText).join("\n") : asText(value ?? ""),
    isBad: output.type.startsWith("error") || error !== "",
    isDenied:
      output.type === "execution-denied" ||
      (output.type === "error-text" && /declin|denied|said no/i.test(output.value)),
    field,
  };
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    for (const name of ["text", "message"]) if (name in value) return String(Reflect.get(value, name));
  }
  return JSON.stringify(value);
}
