import { isRecord } from "../../base/json.ts";

/** What the `beforeTurn` of an extension may change: the part of a turn's settings that is JSON. */
export interface ExtensionTurnConfig {
  readonly system?: string;
  readonly activeTools?: readonly string[];
  readonly toolChoice?: "auto" | "none" | "required" | { readonly type: "tool"; readonly toolName: string };
  readonly maxSteps?: number;
  readonly sendReasoning?: boolean;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly seed?: number;
  readonly stopSequences?: string[];
  readonly maxRetries?: number;
}

const MAX_SYSTEM_CHARS = 200_000;
const MAX_STEPS = 1_000;
const MAX_RETRIES = 10;
const MAX_SEQUENCES = 16;

type Rule = (value: unknown, tools: ReadonlySet<string>) => boolean;

const number =
  (least: number, most: number): Rule =>
  (value) =>
    typeof value === "number" && value >= least && value <= most;
const whole =
  (least: number, most: number): Rule =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most;

const RULES: Readonly<Record<keyof ExtensionTurnConfig, Rule>> = {
  system: (value) => typeof value === "string" && value.length <= MAX_SYSTEM_CHARS,
  activeTools: (value, tools) => isTexts(value) && value.every((name) => tools.has(name)),
  toolChoice: (value, tools) =>
    value === "auto" ||
    value === "none" ||
    value === "required" ||
    (isRecord(value) && value.type === "tool" && typeof value.toolName === "string" && tools.has(value.toolName)),
  maxSteps: whole(1, MAX_STEPS),
  sendReasoning: (value) => typeof value === "boolean",
  maxOutputTokens: whole(1, Number.MAX_SAFE_INTEGER),
  temperature: number(0, 2),
  topP: number(0, 1),
  topK: whole(1, Number.MAX_SAFE_INTEGER),
  presencePenalty: number(-2, 2),
  frequencyPenalty: number(-2, 2),
  seed: whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  stopSequences: (value) => isTexts(value) && value.length <= MAX_SEQUENCES,
  maxRetries: whole(0, MAX_RETRIES),
};

/** What of a hook's return value counts, and the names of what does not. */
export function readTurnConfig(
  value: unknown,
  tools: ReadonlySet<string>,
): { readonly config: ExtensionTurnConfig; readonly refused: readonly string[] } {
  const config: Record<string, unknown> = {};
  const refused: string[] = [];
  for (const [key, setting] of isRecord(value) ? Object.entries(value) : []) {
    const rule = Object.hasOwn(RULES, key) ? RULES[key as keyof ExtensionTurnConfig] : undefined;
    if (rule?.(setting, tools) === true) config[key] = setting;
    else refused.push(key);
  }
  return { config, refused };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
