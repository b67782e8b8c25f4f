/** Somebody who talks with the agent of the crash matrix, whatever the network. */
export interface Ada {
  said(): readonly string[];
  /** The agent's messages. */
  seen(): readonly { readonly id: string; readonly text: string; readonly buttons: readonly unknown[] }[];
  pressed: boolean;
  says(text: string): void;
  presses(messageId: string): void;
}

/** What she does next follows from what she sees and has said. */
export function nextAct(ada: Ada): void {
  const said = ada.said();
  const shows = (text: string) => ada.seen().some((one) => one.text.includes(text));
  if (said.length === 0) ada.says("long");
  else if (!said.includes("pay") && shows("THE END")) ada.says("pay");
  else if (!said.includes("slow") && shows("All is paid.")) ada.says("slow");
  else if (!said.includes("/stop") && shows("Working.")) ada.says("/stop");
  const question = ada.seen().findLast(({ buttons }) => buttons.length > 0);
  if (question === undefined || ada.pressed) return;
  ada.pressed = true;
  ada.presses(question.id);
}

/** All was said, and she sees the end of it. */
export function isOver(ada: Ada): boolean {
  return ada.seen().some(({ text }) => text.includes("(stopped)"));
}
