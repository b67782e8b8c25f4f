/** What a person does: talks, asks for pictures, or says a lot. */
export type Acts = "talk" | "files" | "many";

/** How many messages somebody has to say who says a lot. */
export const MANY = 24;

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
export function nextAct(ada: Ada, acts: Acts): void {
  const said = ada.said();
  const shows = (text: string) => ada.seen().some((one) => one.text.includes(text));
  if (acts === "files") return void (said.length === 0 && ada.sends("look"));
  if (acts === "many") return void (said.length < MANY && ada.says(`m${said.length}.`));
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

function stop(ada: Ada): void {
  if (ada.stopsByButton !== true) return void (ada.said().includes("/stop") || ada.says("/stop"));
  const growing = ada.seen().find(({ text, buttons }) => text.includes("Working.") && buttons.includes("Stop"));
  if (growing !== undefined) ada.presses(growing.id, "Stop");
}

/** All was said, and she sees the end of it. */
export function isOver(ada: Ada, acts: Acts): boolean {
  const shows = (text: string) => ada.seen().some((one) => one.text.includes(text));
  if (acts === "files") return shows("file of 300");
  if (acts === "many") return Array.from({ length: MANY }, (_, i) => `re: m${i}.`).every(shows);
  return shows("(stopped)");
}
