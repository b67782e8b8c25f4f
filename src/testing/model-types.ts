import type { LanguageModel } from "ai";

/** The AI SDK's own model interface, taken from `ai` so that both always agree on the version. */
export type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
export type ModelCallOptions = Parameters<Model["doStream"]>[0];
export type ModelPrompt = ModelCallOptions["prompt"];
export type ModelTool = NonNullable<ModelCallOptions["tools"]>[number];
type ModelGenerateResult = Awaited<ReturnType<Model["doGenerate"]>>;
type ModelStreamResult = Awaited<ReturnType<Model["doStream"]>>;
export type ModelContent = ModelGenerateResult["content"][number];
export type ModelUsage = ModelGenerateResult["usage"];
export type ModelFinishReason = ModelGenerateResult["finishReason"]["unified"];
export type ModelStreamPart = ModelStreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
