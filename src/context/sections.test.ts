import { expect, test } from "vitest";
import { patchSummary, withLeftOut } from "./sections.ts";

const NAMES = ["Goal", "Rules and wishes", "State of the work", "Next", "To look up"];
const GOAL = "## Goal\nAudit  the books.\n\n";
const RULES = "## Rules and wishes\n- never berth 13\n```sh\n# a comment\n## no heading\n```\n";
const STATE = "## State of the work\n### Done\nnothing\n\n\n";
const NEXT = "## Next\nBegin.";
const PRIOR = GOAL + RULES + STATE + NEXT;

test.each<[string, string, string]>([
  ["one section", "## Next\nGo on.", `${GOAL}${RULES}${STATE}## Next\nGo on.`],
  [
    "one in the middle keeps the blanks around it",
    "## State of the work\nHalf.",
    `${GOAL}${RULES}## State of the work\nHalf.\n\n\n${NEXT}`,
  ],
  ["another spelling of the heading", "# 1. **goal:**\nSell.", `# 1. **goal:**\nSell.\n\n${RULES}${STATE}${NEXT}`],
  ["deeper headings", "### Next\nGo on.", `${GOAL}${RULES}${STATE}### Next\nGo on.`],
  [
    "in a fence, with a word before it",
    "```markdown\nHere it is:\n## Next\nGo on.\n```",
    `${GOAL}${RULES}${STATE}## Next\nGo on.`,
  ],
  ["a section that is emptied", "## Next\n(empty)", (GOAL + RULES + STATE).trim()],
  ["a heading with nothing under it", "## Next\n\n## Goal\n", PRIOR],
  ["no change", "(No change.)", PRIOR],
  [
    "no change under headings",
    "## Goal\n(no change)\n## Rules and wishes\n- *Unchanged.*\n## Next\nGo on.",
    `${GOAL}${RULES}${STATE}## Next\nGo on.`,
  ],
  ["line ends of another system", "## Next\r\nGo\r\non.\r\n", `${GOAL}${RULES}${STATE}## Next\nGo\non.`],
  ["a section that there was not, in its place", "## To look up\nterm — u1", `${PRIOR}\n\n## To look up\nterm — u1`],
  ["one that nobody asked for", "## Weather\nRain.", `${PRIOR}\n\n## Weather\nRain.`],
  [
    "all of it",
    "## Goal\nA.\n## Rules and wishes\nB.\n## State of the work\nC.\n## Next\nD.",
    "## Goal\nA.\n\n## Rules and wishes\nB.\n## State of the work\nC.\n\n\n## Next\nD.",
  ],
  ["free text, which is no section and takes none away", "It went well.", `It went well.\n\n${PRIOR}`],
  ["the same heading twice", "## Next\nOne.\n## Next\nTwo.", `${GOAL}${RULES}${STATE}## Next\nOne.\nTwo.`],
])("%s: what is not written stays byte for byte", (_, answer, expected) => {
  expect(patchSummary(PRIOR, answer, NAMES)).toBe(expected);
});

test("a first summary is what was written; free text is followed by free text", () => {
  expect(patchSummary(undefined, ` ${PRIOR}\n`, NAMES)).toBe(PRIOR);
  expect(patchSummary(undefined, "Just words.", NAMES)).toBe("Just words.");
  expect(patchSummary("Just words.", "Other words.", NAMES)).toBe("Other words.");
  expect(patchSummary("Just words.", "## Goal\nSell.", NAMES)).toBe("Just words.\n\n## Goal\nSell.");
  expect(patchSummary("Just words.", "Sure. Here it is.\n\n## Goal\nSell.", NAMES)).toBe(
    "Just words.\n\n## Goal\nSell.",
  );
});

test("a section is placed before those that should come behind it", () => {
  expect(patchSummary("## Goal\nA.\n## Next\nD.", "## State of the work\nC.", NAMES)).toBe(
    "## Goal\nA.\n## State of the work\nC.\n\n## Next\nD.",
  );
});

test("what is left out is told by code alone, the newest ten lines of it", () => {
  const once = withLeftOut(PRIOR, ["[u1 was left out]"]);
  expect(once).toBe(`${PRIOR}\n\n## Left out\n[u1 was left out]`);
  expect(patchSummary(once, "## Left out\n(empty)\n## Weather\nRain.", NAMES)).toBe(
    `${PRIOR}\n\n## Weather\nRain.\n\n## Left out\n[u1 was left out]`,
  );
  expect(patchSummary(undefined, "## Goal\nA.\n## Left out\nnothing", NAMES)).toBe("## Goal\nA.");
  // A heading of that name is the model's own at whatever level it stands.
  for (const mark of ["#", "###"]) {
    const said = `${mark} Goal\nA.\n${mark} Left out\n[9 messages were left out]`;
    expect(patchSummary(undefined, said, NAMES)).toBe(`${mark} Goal\nA.`);
    expect(patchSummary(once, said, NAMES)).not.toContain("9 messages");
  }
  const deep = "## Goal\nA.\n### Left out\n[9 messages were left out]\n### Done\nB.\n###### **Left out:**\nno";
  expect(patchSummary(undefined, deep, NAMES)).toBe("## Goal\nA.\n### Done\nB.");
  expect(patchSummary(once, deep, NAMES)).not.toMatch(/9 messages|\*\*/);
  expect(patchSummary(once, deep, NAMES)).toContain("[u1 was left out]");
  const many = Array.from({ length: 12 }, (_, i) => `[${i}]`).reduce((text, note) => withLeftOut(text, [note]), "");
  expect(many).toBe(`## Left out\n${[2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((i) => `[${i}]`).join("\n")}`);
  expect(withLeftOut(PRIOR, [])).toBe(PRIOR);
});
