import { pickModel } from "../../../shared/model.ts";

/** Without an API key: looks the last word up, then says what it found. */
export const model = pickModel(({ userText, prompt }) => {
  const last = prompt.at(-1);
  const result = last?.role === "tool" ? last.content.find((part) => part.type === "tool-result") : undefined;
  if (result?.output.type === "text") return `The handbook says: ${result.output.value}`;
  if (result !== undefined) return "I could not look it up.";
  const word = userText.match(/\p{L}+/gu)?.at(-1) ?? "";
  return { toolName: "lookUp", input: { word: word.toLowerCase() } };
});
