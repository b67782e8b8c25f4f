import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "How far is the crew that looks at the {n} suppliers?",
    "If one of them is stuck, say so early; I do not want to hear of it on the last day.",
    "The second report reads well, but where do the {n} hours come from?",
    "Let them work side by side as long as they do not write into the same sheet.",
    "I will be away for {n} hours, go on with what you have.",
  ],
  answers: [
    "Two of them are done; the third waits for a price list of {n} pages.",
    "None is stuck. The slowest has read about half of what it was given.",
    "The {n} hours are the sum of the log; I asked for it to be checked once more.",
    "They have a sheet each, and I join them at the end.",
    "I go on, and I ask before anything is sent to anybody outside.",
  ],
};

/** An agent that gives work to others and asks before it acts. */
export function crew(): Conversation {
  const talk = new Talk(
    {
      name: "crew",
      script: "English",
      system: "You lead a crew of agents. Ask before anything leaves the house.",
      facts: [
        { key: "run of prices", from: { tool: "start_agent", in: "output" }, pattern: /"run":"(run-prices-\d+)"/u },
        { key: "run of risks", from: { tool: "start_agent", in: "output" }, pattern: /"run":"(run-risks-\d+)"/u },
        { key: "approved", from: { tool: "send_mail", in: "input" }, pattern: /"to":"([^"]+@approved\.example)"/u },
        { key: "refused", from: { tool: "send_mail", in: "input" }, pattern: /"to":"([^"]+@refused\.example)"/u },
        { key: "limit", from: "user", pattern: /spend more than (\$\d+)/u },
        { key: "deadline", from: "user", pattern: /deadline is (\w+ \d+, \d{4})/u },
        { key: "never", from: "user", pattern: /never (mail anybody at [\w.]+ again)/u },
        { key: "plan", from: "assistant", pattern: /The plan is: ([^.]+)\./u },
        { key: "child failed", from: { tool: "start_agent", in: "error" }, pattern: /(budget of \d+ tokens)/u },
      ],
      tools: { start_agent: ({ task }) => ({ task, run: "run-prices-3", state: "running" }) },
    },
    144,
  );
  talk.user("The deadline is March 3, 2027. Do not spend more than $40 without asking.");
  talk.answer(
    "The plan is: three agents read, one joins, I write.",
    talk.call("start_agent", { task: "prices" }, { run: "run-prices-1", state: "running" }),
  );
  talk.pin(
    talk.user(
      'This is the text that goes out, to the letter: "We ask for your best offer by noon, and we answer the same day."',
    ),
  );
  talk.answer(
    "To the letter.",
    talk.dynamic("start_agent", { task: "risks" }, { run: "run-risks-1", state: "running" }),
  );
  talk.chatter(34, BANK);
  talk.round("Who is at work?", { toolName: "start_agent", input: { task: "prices, again" } });

  talk.answer(
    "It may not be sent.",
    talk.denied("send_mail", { to: "sales@refused.example", subject: "Offer" }, "not before the contract"),
  );
  talk.user("And never mail anybody at rival.example again.");
  talk.answer(
    "Understood.",
    talk.failed("start_agent", { task: "sums" }, "The child has used its budget of 20000 tokens."),
  );
  talk.chatter(36, BANK);
  talk.round("What was refused?");

  talk.answer("Sent.", talk.call("send_mail", { to: "desk@approved.example", subject: "Offer" }, { id: "m-1" }));
  talk.user("The deadline is March 17, 2027 now, and do not spend more than $65.");
  talk.answer(
    "Good. The plan is: two agents read, I join and write.",
    talk.call("start_agent", { task: "risks, again" }, { run: "run-risks-2", state: "running" }),
  );
  talk.chatter(37, BANK);
  talk.round("How much is left?");

  talk.chatter(39, BANK);
  talk.round("Is it time to send it?");
  return talk.end();
}
