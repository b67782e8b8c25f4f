import { pickModel } from "../shared/model.ts";

/** Without an API key: one tool by what the user's words are about, then a sentence about what it gave. */
export const model = pickModel(({ userText, prompt }) => {
  const last = prompt.at(-1);
  const result = last?.role === "tool" ? last.content.find((part) => part.type === "tool-result") : undefined;
  if (result?.output.type.startsWith("error")) return "Then I leave it as it is.";
  if (result !== undefined) return `Done: ${"value" in result.output ? JSON.stringify(result.output.value) : ""}.`;
  const asked = userText.toLowerCase();
  const name = /[\w-]+\.\w+/.exec(asked)?.[0] ?? "notes.txt";
  if (asked.includes("delete")) return { toolName: "deleteFile", input: { name } };
  if (asked.includes("time")) return { toolName: "localTime", input: {} };
  if (asked.includes("file")) return { toolName: "listFiles", input: {} };
  return 'I am a script. Ask for "my files", "the time", or to "delete notes.txt".';
});
