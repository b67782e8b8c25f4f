// What the built-in guide says. Plain text and markdown, nothing else.

const MENU = `- **Call a tool**: "What is the weather in Lisbon?"
- **Use every tool** that I have, one after the other: "Show me every tool"
- **Work with files**, **run code**, **use a skill**, **write a tool for myself**: "Show me files", "Show me code", "Show me skills", "Show me an extension"
- **Helpers**, agents that work for me side by side: "Show me helpers"
- **Work in the background** that I tell you about later: "Research tea in the background"
- **Ask for approval**: "Show me an approval"
- **Use a tool of your browser**: "Which time zone am I in?"
- **Formatted text**: "Show me some markdown"
- **Think aloud**: "Show me reasoning"
- **A long answer**, to stop, reload or go offline in: "Give me a long answer"
- **A window that fills up**, and what happens then: "Show me compaction"
- **More than one answer** to the same question: "Show me versions"
- **A failure**: "Show me an error"
- **Attachments**: send me a file or a picture, and I tell you what arrived`;

const KEYS = `To talk to a real model, set \`OPENAI_API_KEY\` or \`ANTHROPIC_API_KEY\`, or \`OPENAI_BASE_URL\` and \`PERDURE_MODEL\` for a server of your own, and start again.`;

export const INTRODUCTION = `Hello! I am the built-in guide: a small script, not a language model. I need no key, and I always answer in the same way. Everything around me is real, though: this conversation is stored on your disk, it streams to every open tab, and it survives a reload or a restart of the server.

These are the things I can show you:

${MENU}

${KEYS}`;

export const NOT_UNDERSTOOD = `I am the built-in guide, a small script without a language model, so I have no real answer to that. These are the things I can show you:

${MENU}

${KEYS}`;

export const MARKDOWN = `# A heading

Some text with **strong** and *soft* words, \`inline code\`, ~~a mistake~~ and [a link](https://commonmark.org/help/).

## A list

1. First
2. Second
   - with a line below it
   - and another
3. Third

- [x] A task that is done
- [ ] A task that is not

## A table

| What           | Survives a reload | Survives a restart |
| -------------- | :---------------: | :----------------: |
| Messages       |        yes        |        yes         |
| A half answer  |        yes        |        yes         |
| An open question |      yes        |        yes         |

## Some code

\`\`\`ts
import { Think } from "perdure";

class Assistant extends Think {
  override getModel() {
    return openai("gpt-5.4-mini");
  }
}
\`\`\`

> A quotation, and then a line:

---

That is what formatted text looks like.`;

export const REASONING = `The user wants to see reasoning. I am a script, so nothing is decided here. But a real model would weigh its options in this place: what was asked, what is known already, which tool could help, and how long the answer should be. Clients show this apart from the answer, and usually folded.`;

export const AFTER_REASONING = `That was reasoning: it streams before the answer and is stored with it, as a part of its own. Open it above to read what was thought.`;

export const BEFORE_WEATHER = `Let me look that up. The tool runs on the server and takes a moment, so that you can see it work.`;

export const BEFORE_DELETE = `I would like to delete three files, and that needs your approval. You can also reload this page, or restart the server, and answer later.`;

export const BEFORE_RESEARCH = `I have a researcher look into that. It is an agent of its own: open it to see its conversation.`;

export const BEFORE_HELPERS = `I have two helpers for that, and they work side by side. Each is an agent with a conversation, tools and a database of its own. The second one asks before it deletes anything: open it to answer.`;

export const BEFORE_LATER = `I hand that to a researcher and do not wait for it.`;

export function afterReport(name: string): string {
  return `${name} has finished in the background, and I was told in the message above. That works with nobody connected, too, and after a restart of the server.`;
}

export const BEFORE_TIME_ZONE = `Only your browser knows that, so I ask it: this tool has no code on the server.`;

export const BEFORE_ERROR = `I will now fail in the middle of an answer. What I said so far is`;

export const ERROR =
  "This error was made on purpose: you asked for one. Nothing is broken; send another message to go on.";

export const NOTHING_TO_ADD = "That is all.";

const FACTS = [
  "Every word that you see here was written to disk before it was sent to you, so a crash cannot take it back.",
  "You can reload the page now: the answer goes on where it was, and no word is said twice.",
  "Open the same conversation in a second tab, and both tabs show the same words at the same time.",
  "Go offline for a while; when you are back, you are given what you missed, and then the rest.",
  "Press stop, and the answer ends here, in every tab, and stays ended after a restart of the server.",
  "If the server dies while I speak, the answer is carried on when it starts again, even with nobody connected.",
  "A message that you send while I speak waits for its turn and is answered when this answer is at its end.",
  "Each conversation is an agent with a database of its own, and the list beside it is an agent too.",
] as const;

export const VERSIONS = `Nothing that was said here is lost when you say it anew:

- **Answer again**, the round arrow below this answer, makes a second one. \`‹ 2/2 ›\` goes back to this.
- **Edit** your message, with the pencil beside it, and the conversation goes on from there in another way. The old way stays.

Each tab shows the version that you chose in it. Open this conversation in a second tab and go back there: this tab stays where it is.`;

export const PINS = `Pin what must not be lost, with the pin below a message. Whatever is summarised, the model reads that message word by word.`;

export const SEARCH = `Press \`Ctrl\`+\`K\` (or \`⌘\`+\`K\`), or the lens at the top, and type some words. A click on a hit goes to the message, however old it is.`;

const FILLING_LINES = 60;

/** About a third of what the guide is said to be able to read. */
export function fillingAnswer(): string {
  const lines = Array.from({ length: FILLING_LINES }, (_, i) => `${i + 1}. ${FACTS[i % FACTS.length]}`);
  return `A model reads the whole conversation each time, up to a limit. Mine is small, 6,000 tokens, and the meter below the text field says how full it is. **Ask for this three times**: before it is too much, I write a summary of the oldest messages and read that instead. A line in the conversation says so. Nothing is deleted, and **Undo** takes it back.

To do it now, click the meter and choose **Summarise now…** there. You can say what to keep, and change the text before it is used.

The rest is only here to fill the window.

${lines.join("\n")}`;
}

const SENTENCES = 64;

/** About half a minute of talk at the guide's usual pace. */
export function longAnswer(): string {
  const lines = Array.from({ length: SENTENCES }, (_, i) => `${i + 1}. ${FACTS[i % FACTS.length]}`);
  return `This answer has ${SENTENCES} lines and takes about half a minute. Try to stop it, or to reload the page.\n\n${lines.join("\n")}\n\nThat was the whole answer.`;
}
