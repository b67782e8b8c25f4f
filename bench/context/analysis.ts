import { Chance, type Conversation, type Fact, type PlannedCall, type PlannedTurn } from "./conversation.ts";

const TURNS = 56;
const TABLES = ["orders", "visits", "returns", "stock", "staff"] as const;
const REGIONS = ["north", "south", "east", "west"] as const;

const DEFINITIONS: readonly ((n: number) => string)[] = [
  (n) => `a customer counts as active with at least ${n + 2} orders in ${30 + n} days`,
  (n) => `leave store ${400 + n} out, its till was broken`,
  (n) => `the fiscal week ${n + 5} has only six days`,
  (n) => `figures of supplier S-${810 + n} are net, all others gross`,
  (n) => `round margins to ${n % 4} digits in report R-${n}`,
];
const FINDINGS: readonly ((n: number, region: string) => string)[] = [
  (n, region) => `returns in the ${region} peak at ${n + 10}.${n % 10} % in week ${n}`,
  (n, region) => `${1_200 + n} visits of the ${region} have no session`,
  (n, region) => `stock of article ${50_000 + n} is negative in the ${region}`,
];

/** An analysis of data: large tables, charts as files, and the same queries again when the data have changed. */
export function analysis(figures = false): Conversation {
  const chance = new Chance(37, figures);
  const facts: Fact[] = [];
  const saved = Array.from({ length: 10 }, (_, i) => {
    const table = chance.pick(TABLES);
    return { sql: `SELECT * FROM report_${i}_${table} ORDER BY week`, rows: chance.between(20, 260) };
  });
  const turns = Array.from({ length: TURNS }, (_, turn) => analysisTurn(chance, turn, saved, facts));
  return {
    name: figures ? "analysis, figures" : "analysis",
    system: `You analyse the data of a chain of stores. ${chance.prose(250)}`,
    tools: { describe: "Describes a table.", query: "Runs SQL.", chart: "Draws a chart into a file." },
    turns,
    facts,
  };
}

function analysisTurn(
  chance: Chance,
  turn: number,
  saved: readonly { readonly sql: string; readonly rows: number }[],
  facts: Fact[],
): PlannedTurn {
  const add = (by: Fact["by"], text: string) => {
    facts.push({ text, by, turn, about: text });
    return text;
  };
  const definition = turn % 4 !== 3 ? add("user", chance.pick(DEFINITIONS)(facts.length)) : undefined;
  const finding = turn % 2 === 1 ? add("tool", chance.pick(FINDINGS)(facts.length, chance.pick(REGIONS))) : undefined;
  const calls: PlannedCall[] = [];
  if (chance.likely(35)) calls.push(describe(chance, chance.pick(TABLES)));
  for (let i = chance.between(1, 3); i > 0; i--) {
    const { sql, rows } = chance.likely(70)
      ? chance.pick(saved)
      : { sql: `SELECT * FROM ${chance.pick(TABLES)} WHERE week = ${turn}`, rows: chance.between(10, 900) };
    calls.push(query(chance, sql, rows, i === 1 ? finding : undefined));
  }
  if (chance.likely(45)) calls.push(chart(turn));
  return {
    ask: `${chance.prose(chance.between(20, 70))}${definition === undefined ? "" : ` By the way: ${definition}.`} ${chance.prose(10)}`,
    calls,
    answer: `${chance.prose(chance.between(80, 260))}${finding === undefined ? "" : ` It shows that ${finding}.`} ${chance.prose(20)}`,
  };
}

function describe(chance: Chance, table: string): PlannedCall {
  const columns = Array.from({ length: 14 }, (_, i) => ({
    name: `${table}_${i}`,
    type: "text",
    note: chance.prose(8),
  }));
  return { tool: "describe", input: { table }, output: { table, columns }, subject: `describe ${table}` };
}

function query(chance: Chance, sql: string, count: number, note: string | undefined): PlannedCall {
  const rows = Array.from({ length: count }, (_, week) => ({
    ...{ week, region: chance.pick(REGIONS), sold: chance.int(90_000), margin: chance.int(1_000) / 10 },
  }));
  const output = { rows, count, ...(note !== undefined && { note }) };
  return { tool: "query", input: { sql }, output, subject: `query ${sql}` };
}

function chart(turn: number): PlannedCall {
  const path = `charts/turn-${turn}.png`;
  return { tool: "chart", input: { path, kind: "bar" }, output: { path, width: 900, height: 500 }, subject: undefined };
}
