/** Three messages of this. */
export const PARTS_LIMIT = 600;
const paragraph = (n: number) => `${n}. ${"Trees keep what they have been told in rings. ".repeat(5).trim()}`;
export const ANSWER = `${Array.from({ length: 5 }, (_, i) => paragraph(i)).join("\n\n")}\n\nTHE END`;
