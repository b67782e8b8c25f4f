import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "I restarted the router {n} times and the light is still orange.",
    "The app says that my parcel is on its way, but the map has not moved since Tuesday.",
    "Why was I charged for the larger plan when I only asked about it?",
    "I was in the queue for {n} minutes and then the line went dead.",
    "Could you please not send me back to the help page, I have read all of it.",
    "My neighbour has the same box and hers works.",
  ],
  answers: [
    "I am sorry about that. Please hold the button behind the cover for {n} seconds.",
    "The carrier scanned it at the depot; from there it usually takes one more day.",
    "I can see the change in the log. It was made by the old portal, not by you.",
    "Thank you for your patience. I have noted it so that nobody asks you again.",
    "Let us look at the box itself then: what does the label on the bottom say?",
    "That tells us that the line is fine, so it is something between port {n} and the box.",
  ],
};

/** A case with numbers in it, and tools that refuse. */
export function support(): Conversation {
  const talk = new Talk(
    {
      name: "support",
      script: "English",
      system: "You are the support of a phone company. Be brief and kind.",
      facts: [
        { key: "ticket", from: { tool: "open_ticket", in: "output" }, pattern: /"ticket":"(T-\d+)"/u },
        { key: "order", from: "user", pattern: /order number is (\d{4}-\d{6})/u },
        { key: "refund", from: { tool: "refund", in: "output" }, pattern: /"refunded":([\d.]+)/u },
        { key: "refused", from: { tool: "refund", in: "input" }, pattern: /"amount":(\d+),"goodwill":true/u },
        { key: "callback", from: "user", pattern: /call me back on (\w+ at \d+:\d+)/u },
        { key: "serial", from: "user", pattern: /serial number ([A-Z0-9]{12})/u },
        { key: "outage", from: { tool: "line_check", in: "error" }, pattern: /sector (\w+-\d+)/u },
        { key: "promise", from: "assistant", pattern: /I promise that ([^.]+)\./u },
        { key: "rule", from: "user", pattern: /do not (write to my work address)/u },
      ],
      tools: { line_check: () => ({ snr: 41.2, attenuation: 12.8, sector: "ok" }) },
    },
    33,
  );
  talk.user("My order number is 2291-884013 and nothing has worked since Friday.");
  talk.answer(
    "I opened a ticket.",
    talk.call("open_ticket", { queue: "lines" }, { ticket: "T-55810", queue: "lines", sla: "48h" }),
  );
  talk.user("And please do not write to my work address any more. The box has serial number 7QX40PLM22ZA.");
  talk.answer("Noted. I promise that you will not have to tell this again.");
  talk.chatter(36, BANK);
  talk.round("Can you check the line now?", { toolName: "line_check", input: { order: "2291-884013" } });

  talk.answer(
    "It failed at first.",
    talk.failed("line_check", { order: "2291-884013" }, "503 upstream: sector NW-17 does not answer"),
  );
  talk.pin(
    talk.user(
      'For the record, my own words: "I cancel the add-on of 3 March, not the contract." Keep that sentence as it is.',
    ),
  );
  talk.answer("I keep it as it is.");
  talk.user("Please call me back on Thursday at 16:30.");
  talk.answer(
    "A higher amount was not granted.",
    talk.denied("refund", { amount: 120, goodwill: true }, "above the limit of the team"),
  );
  talk.chatter(37, BANK);
  talk.round("What about my money?");

  talk.answer(
    "Done.",
    talk.call("refund", { amount: 38.5, goodwill: false }, { refunded: 38.5, currency: "EUR", days: 5 }),
  );
  talk.user("Sorry, I cannot on Thursday. You can call me back on Saturday at 09:15.");
  talk.answer("Changed.");
  talk.chatter(38, BANK);
  talk.round("Is the part in stock?");

  talk.answer(
    "The first ticket was merged.",
    talk.dynamic("open_ticket", { queue: "lines", merge: true }, { ticket: "T-55977", merged: ["T-55810"] }),
  );
  talk.user("Fine, thank you.");
  talk.answer("You are welcome.");
  talk.chatter(39, BANK);
  talk.round("When will somebody call me?");
  return talk.end();
}
