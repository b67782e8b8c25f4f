/** What a person does: talks, asks for pictures, says two things at once, or asks for what takes a tool. */
export type Acts = "talk" | "files" | "pair" | "tool";

const PAIR = ["one", "two"] as const;

/** How long somebody talks who says a lot. In `process.env.MANY` as JSON. */
export interface Many {
  readonly from: number;
  readonly until: number;
}

/** Between two messages of somebody who says a lot: of a minute, all deliveries are kept. */
const MANY_EVERY_MS = 330;
/** Who says a lot waits when so many are not answered. */
const MANY_WAITING = 10;
/** However slow the machine is. */
const MANY_AT_LEAST = 12;

/** Somebody who talks with the agent of the crash matrix, whatever the network. */
export interface Ada {
  said(): readonly string[];
  /** The agent's messages; one that is a file shows how large it is. */
  seen(): readonly { readonly id: string; readonly text: string; readonly buttons: readonly string[] }[];
  pressed: boolean;
  /** She stops an answer by its button, not by words. */
  readonly stopsByButton?: boolean;
  says(text: string): void;
  /** A gallery of two pictures. */
  sends(text: string): void;
  presses(messageId: string, label: string): void;
}

/** What she does next follows from what she sees and has said. */
export function nextAct(ada: Ada, acts: Acts, many?: Many): void {
  const said = ada.said();
  const shows = (text: string) => ada.seen().some((one) => one.text.includes(text));
  if (acts === "files") return void (said.length === 0 && ada.sends("look"));
  if (acts === "tool") return void (said.length === 0 && ada.says("look"));
  if (acts === "pair") return void (said.length === 0 && PAIR.forEach((text) => ada.says(text)));
  if (many !== undefined) return void (saysMore(ada, many) && ada.says(`m${said.length}.`));
  if (said.length === 0) ada.says("long");
  else if (!said.includes("pay") && shows("THE END")) ada.says("pay");
  else if (!said.includes("slow") && shows("All is paid.")) ada.says("slow");
  else if (said.includes("slow") && shows("Working.")) stop(ada);
  const code = ada.seen().flatMap(({ text }) => /YES (\w{4}) or NO/.exec(text)?.[1] ?? [])[0];
  if (code !== undefined && !said.some((text) => text.startsWith("YES"))) ada.says(`YES ${code}`);
  const question = ada.seen().findLast(({ buttons }) => buttons.includes("Approve"));
  if (question === undefined || ada.pressed) return;
  ada.pressed = true;
  ada.presses(question.id, "Approve");
}

function saysMore(ada: Ada, { from, until }: Many): boolean {
  const said = ada.said().length;
  const now = Date.now();
  const isTime = now >= until ? said < MANY_AT_LEAST : said <= (now - from) / MANY_EVERY_MS;
  return isTime && said - answered(ada) < MANY_WAITING;
}

/** How many of her messages are answered, of those that she says who says a lot. */
function answered(ada: Ada): number {
  const texts = new Set(ada.seen().map(({ text }) => text));
  return ada.said().filter((text) => texts.has(answerTo(text))).length;
}

/** What is answered to one message of many, and of two. */
export function answerTo(text: string): string {
  return `re: ${text}`;
}

function stop(ada: Ada): void {
  if (ada.stopsByButton !== true) return void (ada.said().includes("/stop") || ada.says("/stop"));
  const growing = ada.seen().find(({ text, buttons }) => text.includes("Working.") && buttons.includes("Stop"));
  if (growing !== undefined) ada.presses(growing.id, "Stop");
}

/** All was said, and she sees the end of it. */
export function isOver(ada: Ada, acts: Acts, many?: Many): boolean {
  const shows = (text: string) => ada.seen().some((one) => one.text.includes(text));
  if (acts === "files") return shows("file of 300");
  if (acts === "tool") return shows("of it.");
  if (acts === "pair") return PAIR.every((text) => shows(answerTo(text)));
  if (many !== undefined) {
    const said = ada.said().length;
    return Date.now() >= many.until && said >= MANY_AT_LEAST && answered(ada) === said;
  }
  return shows("(stopped)");
}
