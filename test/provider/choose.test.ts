import { expect, test } from "vitest";
import { chooseModel, type Environment, SettingsError } from "../../examples/start/model/choose.ts";

function chosen(env: Environment) {
  const { model, name, builtIn, service, keyName } = chooseModel(env);
  if (typeof model === "string") throw new Error("A model object was expected.");
  return { provider: model.provider, modelId: model.modelId, name, builtIn, service, keyName };
}

test("without any key the built-in guide answers", () => {
  for (const env of [{}, { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: " " }, { PERDURE_MODEL: "gpt-9" }]) {
    expect(chosen(env)).toMatchObject({ provider: "perdure", modelId: "guide", name: "Built-in guide", builtIn: true });
  }
});

test("a key chooses its provider, with a model that can be changed", () => {
  const openAI = chosen({ OPENAI_API_KEY: "k" });
  expect(openAI).toMatchObject({ provider: "openai.chat", builtIn: false, service: "OpenAI" });
  expect(openAI.name).toBe(openAI.modelId);
  expect(openAI.modelId).toMatch(/^gpt-/);
  const anthropic = chosen({ ANTHROPIC_API_KEY: "k" });
  expect(anthropic).toMatchObject({ provider: "anthropic.messages", builtIn: false, keyName: "ANTHROPIC_API_KEY" });
  expect(anthropic.modelId).toMatch(/^claude-/);
  expect(chosen({ OPENAI_API_KEY: "k", PERDURE_MODEL: "o9" })).toMatchObject({ name: "o9", modelId: "o9" });
  expect(chosen({ ANTHROPIC_API_KEY: "k", PERDURE_MODEL: "claude-x" })).toMatchObject({ modelId: "claude-x" });
});

test("with both keys the name of the model decides", () => {
  const both = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" };
  expect(chosen(both).service).toBe("OpenAI");
  expect(chosen({ ...both, PERDURE_MODEL: "gpt-x" }).service).toBe("OpenAI");
  expect(chosen({ ...both, PERDURE_MODEL: "claude-x" })).toMatchObject({ service: "Anthropic", modelId: "claude-x" });
});

test("a server of one's own comes first, and needs no key", () => {
  const own = { OPENAI_BASE_URL: "http://localhost:11434/v1", PERDURE_MODEL: "llama" };
  expect(chosen(own)).toMatchObject({
    provider: "compatible.chat",
    modelId: "llama",
    builtIn: false,
    service: "The model server at localhost:11434",
  });
  expect(chosen({ ...own, OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" }).provider).toBe("compatible.chat");
});

test.each([
  [{ OPENAI_BASE_URL: "http://localhost:11434/v1" }, "PERDURE_MODEL has to say which model to ask for"],
  [{ OPENAI_BASE_URL: "localhost", PERDURE_MODEL: "m" }, "not an http address"],
  [{ OPENAI_BASE_URL: "file:///etc", PERDURE_MODEL: "m" }, "not an http address"],
  [{ OPENAI_BASE_URL: "http://me:pa55@localhost/v1", PERDURE_MODEL: "m" }, "Put the key into OPENAI_API_KEY"],
])("settings that cannot work are told: %j", (env, text) => {
  expect(() => chooseModel(env)).toThrow(SettingsError);
  expect(() => chooseModel(env)).toThrow(text);
  expect(() => chooseModel(env)).not.toThrow("pa55");
});
