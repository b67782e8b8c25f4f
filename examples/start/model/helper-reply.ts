// What the guide's helpers answer: as the guide, the same conversation always goes the same way.
import type { DeleteFilesTool } from "../contract.ts";
import { closing, type GuideReply, replyWith, textOf } from "./guide-reply.ts";
import type { ModelPrompt } from "./model-types.ts";

const TOPIC = /^Research: (.+)$/m;
const FOLDER = /^Tidy up the folder: (.+)$/m;

/** The researcher: looks for sources, then writes what they say. */
export function researcherReply(prompt: ModelPrompt): GuideReply {
  const topic = given(prompt, TOPIC) ?? "this";
  return replyWith(
    prompt,
    (message) => (TOPIC.test(textOf(message)) ? look(topic) : { text: MORE }),
    () => ({
      text: findings(topic),
    }),
  );
}

/** The tidier: wants to delete files, and has to ask. */
export function tidierReply(prompt: ModelPrompt): GuideReply {
  const folder = given(prompt, FOLDER) ?? "drafts";
  return replyWith(
    prompt,
    (message) => (FOLDER.test(textOf(message)) ? ask(folder) : { text: MORE }),
    (since) => {
      const result = since.flatMap((message) => (message.role === "tool" ? message.content : [])).at(-1);
      if (result?.type !== "tool-result") return { text: MORE };
      return { text: closing(result.toolName, result.output) };
    },
  );
}

const ERROR = "This helper failed on purpose: errors are what it was asked about.";
const MORE = "My work is done. I am a script like the guide, so there is nothing more that I could find out.";

function look(topic: string): GuideReply {
  if (/\b(?:errors?|failures?)\b/i.test(topic)) return { text: "I look for sources and", error: ERROR };
  return {
    text: `I look for sources about **${topic}** first, then I write down what they say.`,
    calls: [{ toolName: "lookUp", input: { topic } }],
  };
}

function findings(topic: string): string {
  return `### What is known about ${topic}

1. **The handbook** begins with the plain question what it is for, and answers it in one sentence.
2. **The field notes** tell what went wrong for others: most of it was lost on the way, not at the start.
3. **The survey** counts how many came back to it, and that was nearly everyone.

In short, there is more to ${topic} than it seems. (The sources are made up. The agent that wrote this, its tool and its progress are real.)`;
}

function ask(folder: string): GuideReply {
  const input: DeleteFilesTool["input"] = { files: [`${folder}/draft-1.md`, `${folder}/old-notes.txt`] };
  return {
    text: `I went through **${folder}**. Two files were not opened for a year, and I would like to delete them.`,
    calls: [{ toolName: "deleteFiles", input }],
  };
}

/** What the task says; the first message of a helper's conversation has it. */
function given(prompt: ModelPrompt, what: RegExp): string | undefined {
  return prompt.map((message) => what.exec(textOf(message))?.[1]).find((found) => found !== undefined);
}
