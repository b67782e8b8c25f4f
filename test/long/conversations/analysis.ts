import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "Break it down by region, please.",
    "Which of the {n} segments moved the most?",
    "Leave out the test accounts this time.",
    "Plot the same thing per week instead of per day.",
  ],
  answers: [
    "The north grew by {n} per cent, the rest stayed where it was.",
    "Most of it comes from one segment; without it the line is flat.",
    "I left them out; that removes {n} rows and changes little.",
    "Per week the dip in the middle disappears.",
  ],
};

interface Row {
  readonly id: number;
  readonly region: string;
  readonly amount: number;
  readonly note: string;
}

/** Numbers, and outputs of which most is never read again. */
export function analysis(): Conversation {
  const talk = new Talk(
    {
      name: "analysis",
      script: "English and JSON",
      system: "You analyse sales data. Always say which query a number comes from.",
      facts: [
        { key: "table", from: "user", pattern: /use the table (\w+\.\w+) only/u },
        { key: "total", from: { tool: "query", in: "output" }, pattern: /"total":(\d+)/u },
        { key: "checksum", from: { tool: "query", in: "output" }, pattern: /"checksum":"([0-9a-f]{8})"/u },
        { key: "outlier", from: { tool: "query", in: "output" }, pattern: /"outlier":\{"id":(\d+)/u },
        { key: "time zone", from: "user", pattern: /all dates are in (\w+\/\w+)/u },
        { key: "cut-off", from: "user", pattern: /cut-off is (\d{4}-\d{2}-\d{2})/u },
        { key: "sql error", from: { tool: "query", in: "error" }, pattern: /(no such column: \w+)/u },
        { key: "finding", from: "assistant", pattern: /Finding: ([^.]+)\./u },
      ],
      tools: {
        query: ({ sql }) => ({ sql, rows: rows(24, 7), total: 90417, checksum: "77aa01fe" }),
      },
    },
    77,
  );
  const query = (sql: string, count: number, more: Record<string, unknown>, last: Record<string, unknown>) =>
    talk.call("query", { sql }, { ...more, rows: rows(count, count), ...last });

  talk.user("We look at returns. Please use the table sales.returns_2027 only, and all dates are in Europe/Oslo.");
  talk.answer(
    "First a look at the whole.",
    query("select * from returns", 40, { total: 48213 }, { checksum: "0badc0de" }),
  );
  talk.pin(talk.user('The wording for the board is fixed: "Returns fell in every region but one."'));
  talk.answer("I will use exactly that sentence.");
  for (let i = 0; i < 8; i++) {
    talk.chatter(3, BANK);
    talk.user(`Now month ${i + 1}.`);
    talk.answer(
      "Here it is.",
      query(`select * from returns where month = ${i + 1}`, 12, { month: i + 1 }, { ok: true }),
    );
  }
  talk.round("What is the total?", { toolName: "query", input: { sql: "select sum(amount) from returns" } });

  talk.user("The cut-off is 2027-03-31.");
  talk.answer(
    "Finding: the west has twice the returns of any other region.",
    talk.failed("query", { sql: "select regin" }, "SQLITE_ERROR: no such column: regin"),
  );
  for (let i = 0; i < 9; i++) {
    talk.chatter(3, BANK);
    talk.user(`Week ${i + 10}, please.`);
    talk.answer("Done.", talk.dynamic("query", { sql: `week ${i + 10}` }, { week: i + 10, rows: rows(11, i) }));
  }
  talk.round("And the west?", { toolName: "query", input: { sql: "select west" } });

  talk.user("The auditors moved it: the cut-off is 2027-06-30.");
  talk.answer(
    "Recomputed.",
    query(
      "select * from returns limit 60",
      60,
      { outlier: { id: 884102, amount: 99 } },
      { total: 51877, checksum: "c001d00d" },
    ),
  );
  for (let i = 0; i < 9; i++) {
    talk.chatter(3, BANK);
    talk.user(`Region ${i + 1}.`);
    talk.answer("See above.", query(`region ${i + 1}`, 12, { region: i + 1 }, { ok: true }));
  }
  talk.round("Which row is odd?");

  for (let i = 0; i < 11; i++) {
    talk.chatter(3, BANK);
    talk.user(`Shop ${i + 1}.`);
    talk.answer("Here.", query(`shop ${i + 1}`, 12, { shop: i + 1 }, { ok: true }));
  }
  talk.round("Write the one sentence for the board.");
  return talk.end();
}

function rows(count: number, seed: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    id: 1000 + i * seed,
    region: ["north", "south", "east", "west"][i % 4] ?? "",
    amount: ((i + 3) * 37 * (seed + 1)) % 900,
    note: "returned within thirty days",
  }));
}
