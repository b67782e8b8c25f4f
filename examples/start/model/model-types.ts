import type { LanguageModel } from "ai";

/** The AI SDK's own model interface, taken from `ai` so that both always agree on the version. */
export type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
export type ModelCall = Parameters<Model["doStream"]>[0];
export type ModelPrompt = ModelCall["prompt"];
export type ModelStreamPart =
  Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

type UserPart = Extract<ModelPrompt[number], { role: "user" }>["content"][number];
type ToolPart = Extract<ModelPrompt[number], { role: "tool" }>["content"][number];
export type PromptFile = Extract<UserPart, { type: "file" }>;
export type PromptToolOutput = Extract<ToolPart, { type: "tool-result" }>["output"];
