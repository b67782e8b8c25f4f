import { pickModel } from "../../../shared/model.ts";

/** Without an API key: looks the last word up, then says what it found. */
export const model = pickModel(({ userText, prompt }) => {
  const last = prompt.at(-1);
  const result = last?.role === "tool" ? last.content.find((part) => part.type === "tool-result") : undefined;
  if (result !== undefined) return `The handbook says: ${"value" in result.output ? String(result.output.value) : ""}`;
  const word = userText.match(/\p{L}+/gu)?.at(-1) ?? "";
  return { toolName: "lookUp", input: { word: word.toLowerCase() } };
});
