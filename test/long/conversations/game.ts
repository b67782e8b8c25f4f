import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "⚔️🐉 I hit the dragon with my {n}⚡ sword, then hide behind the 🗿!",
    "🏃‍♀️💨 run to the 🏰 and open the 🚪 with the 🗝️",
    "🧙‍♂️✨ cast a light spell, I see nothing here 🌑🌑",
    "🍄🍄 eat one, keep {n} for later 😋",
    "👨‍👩‍👧‍👦 are the villagers still in the 🛖?",
  ],
  answers: [
    "💥 You hit for {n} points! 🐉 roars 🔥🔥 and turns to you.",
    "🚪 creaks… inside: 🕸️🕸️🪑 and a cold smell 🥶. Nobody is here.",
    "✨ The wall shows old signs: 🌙🐍🌙. They mean nothing to you yet.",
    "❤️ +{n} health. The taste is strange 🤢 but it helps.",
    "👀 Something moves behind you in the dark 🦇🦇🦇.",
  ],
};

/** A game that is mostly pictures. */
export function game(): Conversation {
  const talk = new Talk(
    {
      name: "game",
      script: "emoji",
      system: "🎲 You run a text adventure. Keep the rules, use emoji.",
      facts: [
        { key: "hero", from: "user", pattern: /my hero is called (\p{L}+ \p{Extended_Pictographic})/u },
        { key: "gold", from: "assistant", pattern: /You now own (\d+) 🪙/u },
        { key: "door code", from: "assistant", pattern: /the code is ((?:\p{Extended_Pictographic}️?){4})/u },
        { key: "rule", from: "user", pattern: /house rule: ([^!]+)!/u },
        { key: "dice", from: { tool: "roll", in: "output" }, pattern: /"quest":"(\d+d\d+=\d+)"/u },
        { key: "ally", from: "assistant", pattern: /(\p{L}+) the 🦉 joins you/u },
        { key: "level", from: { tool: "save_game", in: "input" }, pattern: /"level":(\d+)/u },
      ],
      tools: { roll: () => ({ dice: "1d20", result: 17, quest: "1d20=17" }) },
    },
    99,
  );
  talk.user("🎮 my hero is called Wren 🦊 and there is one house rule: nobody may harm the 🦉!");
  talk.answer(
    "🎲 The game begins. You now own 12 🪙.",
    talk.call("roll", { dice: "2d6" }, { quest: "2d6=9", faces: [4, 5] }),
  );
  talk.pin(talk.user("📌 keep this oath as it is: “🌊🗡️ By salt and steel, I carry the lamp 🪔 to the 🏔️.”"));
  talk.answer("🪔 The oath is carved in stone. Behind the stone the code is 🌙🐍🔥🗝️ for the north door.");
  talk.chatter(36, BANK);
  talk.round("🤔 what do I carry?", { toolName: "roll", input: { dice: "1d20" } });

  talk.user("I sell two 🍄");
  talk.answer("💰 You now own 31 🪙. Hoot the 🦉 joins you.", talk.call("save_game", { level: 3, slot: "a" }, "💾"));
  talk.chatter(39, BANK);
  talk.round("🗺️ where am I?");

  talk.user("I pay the ferry ⛴️");
  talk.answer("🌊 You now own 6 🪙. The signs have changed: the code is 🔥🌙🌙🐍 now.");
  talk.chatter(39, BANK);
  talk.round("🚪 open the north door");

  talk.answer("💾 saved", talk.dynamic("save_game", { level: 5, slot: "b" }, { ok: true }));
  talk.chatter(41, BANK);
  talk.round("🏁 am I close to the 🏔️?");
  return talk.end();
}
