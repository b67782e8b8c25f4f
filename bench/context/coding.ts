import { Chance, type Conversation, type Fact, type PlannedCall, type PlannedTurn } from "./conversation.ts";

const TURNS = 60;
const FOLDERS = ["api", "billing", "db", "mail", "queue", "ui"] as const;
const FILES_EACH = 4;
const PATTERNS = ["openPool", "retryAfter", "formatPrice", "parseHeader", "TODO", "deadline"] as const;

/** What the user demands, once. `n` makes each different. */
const DEMANDS: readonly ((n: number, file: string) => string)[] = [
  (n) => `the preview server has to listen on port ${7400 + n}`,
  (n, file) => `nobody may change the exports of ${file} before release ${n}`,
  (n) => `a checkout must not take more than ${310 + n} milliseconds`,
  (n) => `call the new setting retryBudget${n}`,
  (n) => `errors of this kind get the code E-${4100 + n}`,
  (n) => `ticket SHOP-${900 + n} describes why it was built that way`,
  (n) => `keep at most ${n + 11} connections open in the pool of reports`,
];
/** What a test or a file reveals. */
const FINDINGS: readonly ((n: number, file: string) => string)[] = [
  (n, file) => `${file} fails at line ${120 + n} because the cursor is closed twice`,
  (n) => `the suite needs the variable CACHE_SEED=${5500 + n}`,
  (n, file) => `${file} still reads the table orders_v${n}`,
];

interface SourceFile {
  readonly path: string;
  readonly lines: string[];
}

/** A coding session: files are read, changed and read again, tests run again and again. */
export function coding(figures = false): Conversation {
  const chance = new Chance(11, figures);
  const files = FOLDERS.flatMap((folder) =>
    Array.from({ length: FILES_EACH }, (_, i) => newFile(chance, `src/${folder}/${folder}-${i + 1}.ts`)),
  );
  const facts: Fact[] = [];
  const turns: PlannedTurn[] = [];
  let near = files.slice(0, 4);
  for (let turn = 0; turn < TURNS; turn++) {
    // The work stays in one corner for a while, then moves on.
    if (turn % 6 === 0) near = [0, 1, 2, 3].map(() => chance.pick(files));
    turns.push(codingTurn(chance, turn, near, files, facts));
  }
  return {
    name: figures ? "coding, figures" : "coding",
    system: `You are an engineer who works on a shop written in TypeScript. ${chance.prose(300)}`,
    tools: {
      list: "Lists a folder.",
      grep: "Finds lines in all files.",
      read: "Reads a file.",
      edit: "Replaces a piece of a file.",
      test: "Runs tests.",
    },
    turns,
    facts,
  };
}

function codingTurn(
  chance: Chance,
  turn: number,
  near: readonly SourceFile[],
  files: readonly SourceFile[],
  facts: Fact[],
): PlannedTurn {
  const file = chance.pick(near);
  const calls: PlannedCall[] = [];
  const add = (by: Fact["by"], text: string) => {
    facts.push({ text, by, turn, about: text });
    return text;
  };
  const demand = turn % 3 !== 2 ? add("user", chance.pick(DEMANDS)(facts.length, file.path)) : undefined;
  const finding = turn % 3 === 1 ? add("tool", chance.pick(FINDINGS)(facts.length, file.path)) : undefined;
  if (chance.likely(30)) calls.push(list(files, chance.pick(FOLDERS)));
  if (chance.likely(45)) calls.push(grep(files, chance.pick(PATTERNS)));
  calls.push(read(file));
  if (chance.likely(60)) calls.push(read(chance.pick(near)));
  calls.push(edit(chance, file));
  if (chance.likely(50)) calls.push(read(file));
  const command = chance.likely(50) ? "npm test" : `npm test -- ${file.path}`;
  calls.push(test(chance, command, finding));
  if (chance.likely(40)) {
    calls.push(read(file), edit(chance, file), test(chance, command, undefined));
  }
  return {
    ask: `Please go on with ${file.path}. ${chance.prose(chance.between(20, 80))}${demand === undefined ? "" : ` Mind that ${demand}.`} ${chance.prose(10)}`,
    calls,
    answer: `${chance.prose(chance.between(40, 150))}${finding === undefined ? "" : ` What I found: ${finding}.`} ${chance.prose(20)}`,
  };
}

function newFile(chance: Chance, path: string): SourceFile {
  return { path, lines: Array.from({ length: chance.between(60, 340) }, () => line(chance)) };
}

function line(chance: Chance): string {
  const [a, b, c] = [chance.prose(1), chance.prose(1), chance.pick(PATTERNS)];
  return chance.likely(20)
    ? `  const ${a} = await ${c}(${b}, ${chance.int(100)});`
    : `  ${a}.${b}(${chance.int(1_000)});`;
}

function read({ path, lines }: SourceFile): PlannedCall {
  const output = lines.map((text, i) => `${i + 1}\t${text}`).join("\n");
  return { tool: "read", input: { path }, output, subject: `read ${path}` };
}

function edit(chance: Chance, { path, lines }: SourceFile): PlannedCall {
  const at = chance.int(lines.length);
  const before = lines[at] ?? "";
  const after = line(chance);
  lines[at] = after;
  return { tool: "edit", input: { path, before, after }, output: `${path}: 1 place changed.`, subject: undefined };
}

function list(files: readonly SourceFile[], folder: string): PlannedCall {
  const path = `src/${folder}`;
  const own = files.filter((file) => file.path.startsWith(`${path}/`));
  const output = own.map((file) => `${file.path}  ${file.lines.join("\n").length} bytes`).join("\n");
  return { tool: "list", input: { path }, output, subject: `list ${path}` };
}

const MAX_HITS = 80;

function grep(files: readonly SourceFile[], pattern: string): PlannedCall {
  const hits = files.flatMap(({ path, lines }) =>
    lines.flatMap((text, i) => (text.includes(pattern) ? [`${path}:${i + 1}: ${text.trim()}`] : [])),
  );
  const output = hits.slice(0, MAX_HITS).join("\n");
  return { tool: "grep", input: { pattern }, output, subject: `grep ${pattern}` };
}

function test(chance: Chance, command: string, finding: string | undefined): PlannedCall {
  // Once in a while it tells everything.
  const most = chance.likely(8) ? 900 : 220;
  const count = command === "npm test" ? chance.between(60, most) : chance.between(8, 50);
  const lines = Array.from({ length: count }, (_, i) => `ok ${i + 1} ${chance.prose(6)} (${chance.int(90)} ms)`);
  if (finding !== undefined) lines.splice(chance.int(count), 0, `not ok: ${finding}`, `  ${chance.prose(60)}`);
  return { tool: "test", input: { command }, output: lines.join("\n"), subject: `test ${command}` };
}
