const LONG_SENTENCE = 20;

/** Counts words and sentences, and finds heavy words. */
export default async function run(input, ctx) {
  const text = typeof input?.path === "string" ? await fromWorkspace(input.path, ctx) : input?.text;
  if (typeof text !== "string" || text.trim() === "")
    throw new Error('Give { "text": "…" } or { "path": "/draft.md" }.');
  const sentences = text.split(/(?<=[.!?])\s+/).filter((sentence) => /\w/.test(sentence));
  const words = wordsOf(text);
  const longest = sentences
    .map((sentence) => ({ words: wordsOf(sentence).length, sentence: sentence.trim() }))
    .filter((one) => one.words > LONG_SENTENCE)
    .sort((a, b) => b.words - a.words);
  return {
    words: words.length,
    sentences: sentences.length,
    wordsInASentence: Math.round((10 * words.length) / Math.max(1, sentences.length)) / 10,
    longest: longest.slice(0, 5),
    heavy: heavyWords(text, ctx.files["references/lighter-words.txt"]),
  };
}

async function fromWorkspace(path, ctx) {
  if (ctx.workspace === undefined) throw new Error("There is no workspace here: give the text itself.");
  return ctx.workspace.readFile(path);
}

function wordsOf(text) {
  return text.match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? [];
}

function heavyWords(text, list) {
  const lower = text.toLowerCase();
  return list
    .split("\n")
    .map((line) => line.split("="))
    .filter(([heavy, lighter]) => lighter !== undefined && new RegExp(`\\b${heavy}\\b`).test(lower))
    .map(([heavy, lighter]) => ({ heavy, lighter }));
}
