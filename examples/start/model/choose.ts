import "./empty-settings.ts";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import { guide, guidePace } from "./guide.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Which model answers, and what there is to say about it. */
export interface ModelChoice {
  readonly model: LanguageModel;
  /** To show: "Built-in guide", or the name of the model. */
  readonly name: string;
  readonly builtIn: boolean;
  /** Who is asked, for messages about failures: "OpenAI", or the address of a server. */
  readonly service: string;
  /** Where the key comes from, for the message that it was refused. */
  readonly keyName?: string;
  /** What must never be shown. */
  readonly secrets: readonly string[];
}

/** The settings name no model that can be asked. The message says what to change. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

const OPENAI_DEFAULT = "gpt-5.4-mini";
const ANTHROPIC_DEFAULT = "claude-sonnet-5";

/**
 * Picks the model by the environment: a server of your own (`OPENAI_BASE_URL`), else OpenAI (`OPENAI_API_KEY`) or
 * Anthropic (`ANTHROPIC_API_KEY`), else the built-in guide. `PERDURE_MODEL` names the model; with both keys one
 * that starts with `claude` means Anthropic. Nothing is asked over the network.
 * @throws SettingsError
 */
export function chooseModel(env: Environment): ModelChoice {
  const baseURL = setting(env, "OPENAI_BASE_URL");
  const openAIKey = setting(env, "OPENAI_API_KEY");
  const anthropicKey = setting(env, "ANTHROPIC_API_KEY");
  const name = setting(env, "PERDURE_MODEL");
  const secrets = [openAIKey, anthropicKey].filter((key) => key !== undefined);
  if (baseURL !== undefined) return ownServer(baseURL, openAIKey, name, secrets);
  if (anthropicKey !== undefined && (openAIKey === undefined || name?.startsWith("claude") === true)) {
    return anthropic(anthropicKey, name ?? ANTHROPIC_DEFAULT, secrets);
  }
  if (openAIKey !== undefined) return openAI(openAIKey, name ?? OPENAI_DEFAULT, secrets);
  return { model: guide(guidePace(env)), name: "Built-in guide", builtIn: true, service: "The guide", secrets };
}

function ownServer(
  baseURL: string,
  apiKey: string | undefined,
  name: string | undefined,
  secrets: readonly string[],
): ModelChoice {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new SettingsError(
      "OPENAI_BASE_URL is not an http address. It looks like this: OPENAI_BASE_URL=http://localhost:11434/v1",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new SettingsError("OPENAI_BASE_URL has a user name or a password in it. Put the key into OPENAI_API_KEY.");
  }
  if (name === undefined) {
    throw new SettingsError(
      `OPENAI_BASE_URL is set, so PERDURE_MODEL has to say which model to ask for at ${url.host}: PERDURE_MODEL=llama3.2 npm start`,
    );
  }
  // The usage of streams is optional in this API; servers that do not know the field pass it over.
  const provider = createOpenAICompatible({ name: "compatible", baseURL, apiKey, includeUsage: true });
  return {
    model: provider(name),
    name,
    builtIn: false,
    service: `The model server at ${url.host}`,
    keyName: "OPENAI_API_KEY",
    secrets,
  };
}

function openAI(apiKey: string, name: string, secrets: readonly string[]): ModelChoice {
  // The chat API and not `responses`: that one keeps the conversation on OpenAI's side, and ours is kept here.
  const model = createOpenAI({ apiKey }).chat(name);
  return { model, name, builtIn: false, service: "OpenAI", keyName: "OPENAI_API_KEY", secrets };
}

function anthropic(apiKey: string, name: string, secrets: readonly string[]): ModelChoice {
  const model = createAnthropic({ apiKey })(name);
  return { model, name, builtIn: false, service: "Anthropic", keyName: "ANTHROPIC_API_KEY", secrets };
}

/** Set to nothing is not set. */
function setting(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}
