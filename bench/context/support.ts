import { Chance, type Conversation, type Fact, type PlannedCall, type PlannedTurn } from "./conversation.ts";

const TURNS = 240;
const NAMES = ["Adaeze Obi", "Bram Visser", "Chiara Longo", "Dilan Kaya", "Emeka Nwosu", "Freya Lund"] as const;
const STREETS = ["Harbour Lane", "Mill Road", "Station Street", "Orchard Way", "Bridge Square"] as const;

/** What a customer says of themselves; about the same thing they may say something else later. */
const STATEMENTS: readonly { readonly about: string; readonly say: (n: number, chance: Chance) => string }[] = [
  { about: "address", say: (n, chance) => `my address is ${n + 3} ${chance.pick(STREETS)}` },
  { about: "phone", say: (n) => `you reach me under 0170 55${1_000 + n}` },
  {
    about: "day",
    say: (n) => `please deliver on the ${1 + (n % 28)}th, not before ${8 + (n % 9)} o'clock (note ${n})`,
  },
  { about: "contact", say: (n, chance) => `talk to ${chance.pick(NAMES)}, extension ${200 + n}` },
  { about: "payment", say: (n) => `charge the account ending in ${4_000 + n}` },
];
/** What nothing replaces. */
const EVENTS: readonly ((n: number, chance: Chance) => string)[] = [
  (n) => `order A-${7_000 + n} came without the power supply`,
  (n, chance) => `${chance.pick(NAMES)} promised me a refund of ${n + 20}.50 euros`,
  (n) => `the serial number is KX-${30_000 + n}`,
  (n, chance) => `on ${2 + (n % 26)} March I wrote to ${chance.pick(NAMES)} about case ${600 + n}`,
];

/** A support chat of weeks: names, dates, numbers, and what the customer wants otherwise after all. */
export function support(figures = false): Conversation {
  const chance = new Chance(23, figures);
  const facts: Fact[] = [];
  const turns = Array.from({ length: TURNS }, (_, turn) => supportTurn(chance, turn, facts));
  return {
    name: figures ? "support, figures" : "support",
    system: `You help customers of a shop for instruments. ${chance.prose(200)}`,
    tools: { order: "Looks an order up." },
    turns,
    facts,
  };
}

function supportTurn(chance: Chance, turn: number, facts: Fact[]): PlannedTurn {
  const said: string[] = [];
  const n = facts.length;
  if (turn % 3 === 0) {
    const { about, say } = chance.pick(STATEMENTS);
    // Some things are said of one parcel, some of another.
    const subject = `${about} ${chance.int(4)}`;
    const text = say(n, chance);
    facts.push({ text, by: "user", turn, about: subject });
    said.push(`About parcel ${subject.split(" ")[1]}: ${text}.`);
  } else if (turn % 3 === 1 && chance.likely(70)) {
    const text = chance.pick(EVENTS)(n, chance);
    facts.push({ text, by: "user", turn, about: text });
    said.push(`You should know that ${text}.`);
  }
  const calls: PlannedCall[] = [];
  let answer = chance.prose(chance.between(120, 420));
  if (chance.likely(25)) {
    const id = `A-${chance.between(7_000, 7_012)}`;
    const finding = chance.likely(40) ? `order ${id} left warehouse ${30 + facts.length} by mistake` : undefined;
    if (finding !== undefined) {
      facts.push({ text: finding, by: "tool", turn, about: finding });
      answer += ` I see that ${finding}.`;
    }
    calls.push({ tool: "order", input: { id }, output: order(chance, id, turn, finding), subject: `order ${id}` });
  }
  // Somebody pastes a letter now and then.
  const letter = chance.likely(30) ? `\n\nThis is what I was sent:\n${chance.prose(chance.between(600, 2_400))}` : "";
  return {
    ask: `${chance.prose(chance.between(15, 90))} ${said.join(" ")} ${chance.prose(15)}${letter}`,
    calls,
    answer: `${answer} ${chance.prose(20)}`,
  };
}

function order(chance: Chance, id: string, turn: number, note: string | undefined) {
  const items = Array.from({ length: chance.between(4, 20) }, (_, i) => ({
    ...{ line: i + 1, article: chance.prose(6), price: chance.int(90_000) / 100 },
  }));
  return { order: id, status: `as of turn ${turn}`, items, ...(note !== undefined && { note }) };
}
