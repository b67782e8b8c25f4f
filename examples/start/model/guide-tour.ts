// What the guide does with each of its tools, in order. Twice it makes a mistake on purpose, reads what the tool says to it,
// and mends it.
import type { Said } from "./said.ts";

/** Steps that can be asked for by themselves. */
export type Group =
  | "files"
  | "skill"
  | "extension"
  | "library"
  | "code"
  | "counting"
  | "web"
  | "page"
  | "machine"
  | "end";

/** Something to do with one tool, or with several side by side. */
export interface TourStep {
  readonly group: Group;
  /** A name that begins with `*` is known by its end only. Where a tool is not there, the step is passed over. */
  readonly tools: readonly string[];
  /** What is said before. */
  readonly before: string;
  /** One for each tool. `past` is what came of all calls so far, the last one last. */
  readonly inputs: (past: readonly Said[]) => readonly unknown[];
  /** What is said afterwards. */
  readonly after: (said: readonly Said[]) => string;
}

const PLAN = "/notes/plan.md";
const TEXT = "# The plan\n\nUtilize the morning.\nDrink tea at five.\n";
const MARKUP = /<[^>\n]*>/g;
const QUOTE_CHARS = 240;

const COUNTER = `({
  tools: {
    count: {
      description: "Counts the words of a file.",
      parameters: { path: { type: "string" } },
      required: ["path"],
      execute: async ({ path }, host) => {
        const text = await host.readFile(path);
        if (text === null) throw new Error("There is no file " + path + ".");
        return { words: text.split(/\\s+/).filter(Boolean).length };
      },
    },
  },
})`;

const WRONG_CODE = `const here = await tools.wether({ city: "Lisbon" });
return here.celsius;`;

const RIGHT_CODE = `const cities = ["Lisbon", "Oslo"];
const all = await Promise.all(cities.map((city) => tools.weather({ city })));
const warmest = all.sort((a, b) => b.celsius - a.celsius)[0];
console.log("asked for", all.length, "cities");
await tools.write({ path: "/notes/warmest.txt", content: warmest.city });
const first = await tools.deleteFiles({ files: ["draft-1.md"] });
const second = await tools.deleteFiles({ files: ["draft-2.md"] });
return { warmest: warmest.city, deleted: [...first.deleted, ...second.deleted] };`;

/** A short word on what came back; what went wrong in the tool's own words. */
function told(good: string | ((said: Said) => string)): TourStep["after"] {
  return (all) =>
    all
      .map((said) => {
        if (said.isDenied) return "You said no, so it was not done. I go on without it.";
        if (said.isBad) return `It did not work. The tool told me: ${quote(said.text)}`;
        return typeof good === "string" ? good : good(said);
      })
      .filter((text, at, texts) => texts.indexOf(text) === at)
      .join(" ");
}

/** Twice a tool is called in a wrong way, so that one can see what it says. */
function mistake(good: string): TourStep["after"] {
  return ([said]) =>
    said?.isBad === true ? `That was a mistake, on purpose. The tool told me: ${quote(said.text)}` : good;
}

function quote(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").replaceAll(MARKUP, "").replaceAll(/[`*]/g, "").trim();
  return `“${flat.length > QUOTE_CHARS ? `${flat.slice(0, QUOTE_CHARS)}…` : flat}”`;
}

/** What the last call of a tool brought. */
function last(past: readonly Said[], toolName: string): Said | undefined {
  return past.findLast((said) => said.toolName === toolName);
}

/** The address of this app: a tool that was not allowed to reach another one has said it. */
function origin(past: readonly Said[]): string {
  const told = past.map(({ text }) => /Allowed: (https?:\/\/[\w.-]+(?::\d+)?)/.exec(text)?.[1]);
  return told.findLast((url) => url !== undefined) ?? "http://localhost";
}

export const TOUR: readonly TourStep[] = [
  {
    group: "files",
    tools: ["write"],
    before: "I have files of my own, in the store of this conversation. First I **write** one.",
    inputs: () => [{ path: PLAN, content: TEXT }],
    after: told("The file is there."),
  },
  {
    group: "files",
    tools: ["read"],
    before: "I **read** it again.",
    inputs: () => [{ path: PLAN }],
    after: told("It says what I wrote."),
  },
  {
    group: "files",
    tools: ["edit"],
    before: "I **edit** it, but with a text that is not in it.",
    inputs: () => [{ path: PLAN, old_string: "Drink coffee at five.", new_string: "Drink tea at six." }],
    after: mistake("The text was there after all."),
  },
  {
    group: "files",
    tools: ["edit"],
    before: "So once more, with the text that I read.",
    inputs: () => [{ path: PLAN, old_string: "Drink tea at five.", new_string: "Drink tea at six." }],
    after: told("Now it is changed."),
  },
  {
    group: "files",
    tools: ["list", "find", "grep"],
    before: "I **list** a directory, **find** files by their names, and look for words with **grep**, side by side.",
    inputs: () => [{ path: "/notes" }, { pattern: "*.md" }, { pattern: "tea at \\w+" }],
    after: told("All three found the plan."),
  },
  {
    group: "files",
    tools: ["bash"],
    before: "A shell works on the same files: **bash** counts lines. It is a shell without a machine behind it.",
    inputs: () => [{ command: `wc -l < ${PLAN} && sort ${PLAN} | tail -1` }],
    after: told((said) => `It printed ${quote(said.field("stdout") || said.text)}.`),
  },
  {
    group: "skill",
    tools: ["activate_skill"],
    before: "Skills are instructions for a kind of work. I **activate** one: how to write plainly.",
    inputs: () => [{ name: "plain-writing" }],
    after: told("I have its instructions now."),
  },
  {
    group: "skill",
    tools: ["read_skill_resource"],
    before: "It comes with files. I **read** its list of lighter words.",
    inputs: () => [{ name: "plain-writing", path: "references/lighter-words.txt" }],
    after: told("The list is long enough."),
  },
  {
    group: "skill",
    tools: ["run_skill_script"],
    before: "And with scripts, which run in a sandbox. One of them measures a text.",
    inputs: () => [{ name: "plain-writing", script: "scripts/measure.js", input: { text: `${TEXT.slice(2)}` } }],
    after: told("It counted the words and found “utilize”, for which there is a lighter one."),
  },
  {
    group: "library",
    tools: ["connect_library"],
    before: "Tools can come from MCP servers. This app has a small one, a library: I **connect** to it.",
    inputs: () => [{}],
    after: told(
      (said) => `Connected. From the next turn on it brings ${quote(said.field("tools").replaceAll(/["[\]]/g, ""))}.`,
    ),
  },
  {
    group: "extension",
    tools: ["load_extension"],
    before:
      "I can also write tools for myself. This **extension** counts words, and wants to read my files, so you are asked.",
    inputs: () => [
      {
        ...{ name: "words", version: "1.0.0", description: "Counts words." },
        ...{ permissions: { workspace: "read" }, source: COUNTER },
      },
    ],
    after: told("It is loaded. Its tool is there from the next turn on: ask me to count the words."),
  },
  {
    group: "extension",
    tools: ["list_extensions"],
    before: "I **list** what is loaded.",
    inputs: () => [{}],
    after: told("That is all of them, with what each may do."),
  },
  {
    group: "code",
    tools: ["execute"],
    before: "Instead of ten calls I can write **code** that makes them. First with a slip in the name of a tool.",
    inputs: () => [{ code: WRONG_CODE }],
    after: mistake("It ran after all."),
  },
  {
    group: "code",
    tools: ["execute"],
    before:
      "Now without it. The code deletes two drafts, which needs your yes each time: it waits in the middle, with all of its variables.",
    inputs: () => [{ code: RIGHT_CODE }],
    after: told((said) => `The code is through, and returned ${quote(said.field("result") || said.text)}.`),
  },
  {
    group: "counting",
    tools: ["words_count"],
    before: "The tool that I wrote is there now: it **counts the words** of my plan.",
    inputs: () => [{ path: PLAN }],
    after: told((said) => `It counted ${said.field("words")} words.`),
  },
  {
    group: "counting",
    tools: ["unload_extension"],
    before: "I need the extension no more and **unload** it.",
    inputs: () => [{ name: "words" }],
    after: told("It is gone, and its tool with it."),
  },
  {
    group: "library",
    tools: ["*_find_books"],
    before: "And the library answers over MCP.",
    inputs: () => [{ about: "tea" }],
    after: told("It has a book about tea."),
  },
  {
    group: "web",
    tools: ["fetch_url"],
    before: "I may read pages, but only of hosts that are allowed. I try one that is not.",
    inputs: () => [{ url: "https://example.com/" }],
    after: mistake("It was allowed after all."),
  },
  {
    group: "web",
    tools: ["fetch_url"],
    before: "It says what I can reach, so I **fetch** a page of this app.",
    inputs: (past) => [{ url: `${origin(past)}/about` }],
    after: told("I have its text. It is marked as text from outside, which gives no orders."),
  },
  {
    group: "web",
    tools: ["book_table"],
    before: "Some things must not happen twice: they are **actions**. I would like to book a table.",
    inputs: () => [{ restaurant: "The Kettle", date: "2031-05-04", people: 2 }],
    after: told(
      (said) => `Booked: table ${said.field("table")}. If I asked again, nothing would be booked a second time.`,
    ),
  },
  {
    group: "page",
    tools: ["weather", "timeZone"],
    before: "**weather** runs on the server and **timeZone** in your browser, side by side.",
    inputs: () => [{ city: "Lisbon" }, {}],
    after: told("Both answered."),
  },
  {
    group: "page",
    tools: ["deleteFiles"],
    before: "**deleteFiles** asks you by itself, too.",
    inputs: () => [{ files: ["old-notes.txt"] }],
    after: told("You approved, and it pretended to delete it."),
  },
  {
    group: "machine",
    tools: ["run_process"],
    before: "This machine has a jail, so I can **run** real programs in it, with a copy of my files.",
    inputs: () => [{ command: "ls /workspace/notes && uname -s" }],
    after: told((said) => `It printed ${quote(said.field("stdout") || said.text)}.`),
  },
  {
    group: "machine",
    tools: ["browser_open"],
    before: "It has a browser, too. I **open** a page of this app.",
    inputs: (past) => [{ url: `${origin(past)}/about` }],
    after: told("The page is open."),
  },
  {
    group: "machine",
    tools: ["browser_read"],
    before: "I **read** it.",
    inputs: () => [{ format: "text" }],
    after: told("I have its text."),
  },
  {
    group: "machine",
    tools: ["browser_screenshot", "browser_pdf"],
    before: "I take a **picture** of it, and a PDF. Both are files of mine.",
    inputs: () => [{}, {}],
    after: told("They are in my files."),
  },
  {
    group: "machine",
    tools: ["read"],
    before: "I look at the picture: models that see are shown it, and you are, too.",
    inputs: (past) => [{ path: /\/browser\/\S+\.png/.exec(last(past, "browser_screenshot")?.text ?? "")?.[0] ?? PLAN }],
    after: told("There it is."),
  },
  {
    group: "machine",
    tools: ["browser_snapshot"],
    before: "A **snapshot** names what can be clicked.",
    inputs: () => [{}],
    after: told("There is a link."),
  },
  {
    group: "machine",
    tools: ["browser_act"],
    before: "I **click** on the link.",
    inputs: (past) => [
      {
        ref: /link[^\n]*?\[ref=(\w+)\]/.exec(last(past, "browser_snapshot")?.text ?? "")?.[1] ?? "e1",
        action: "click",
      },
    ],
    after: told("That led to another page."),
  },
  {
    group: "machine",
    tools: ["browser_close"],
    before: "I **close** the browser.",
    inputs: () => [{}],
    after: told("It is closed."),
  },
  {
    group: "end",
    tools: ["delete"],
    before: "I tidy up behind me and **delete** my notes.",
    inputs: () => [{ path: "/notes", recursive: true }],
    after: told("They are gone."),
  },
  {
    group: "end",
    tools: ["research", "tidyUp"],
    before:
      "At last, two **helpers**, agents that work for me. The second one asks before it deletes: open it to answer.",
    inputs: () => [{ topic: "tools" }, { folder: "drafts" }],
    after: told("They are back."),
  },
  {
    group: "end",
    tools: ["researchLater"],
    before: "And one in the **background**.",
    inputs: () => [{ topic: "tea" }],
    after: told("I do not wait for it: it reports by itself."),
  },
];
