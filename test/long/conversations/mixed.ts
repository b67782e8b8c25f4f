import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "Translate the label into all six languages; it has {n} characters at most.",
    "Το κουμπί δεν χωράει στην οθόνη, μπορείτε να βρείτε κάτι πιο σύντομο;",
    "この文は長すぎます。{n}文字以内にしてください。",
    "Чи можна залишити скорочення без крапки в кінці?",
    "האם אפשר לקצר את הכותרת ל-{n} תווים בלי לשנות את המשמעות?",
    "这个词在繁体里是不是另外一个写法？",
  ],
  answers: [
    "Done: »Speichern«, “Save”, «Enregistrer», 「保存」, 저장, שמירה — {n} characters at most.",
    "Προτείνω «Αποθήκευση» ή απλώς «ΟΚ», που χωράει παντού.",
    "「保存する」なら{n}文字で収まります。",
    "Так, у таблиці скорочення стоять без крапки.",
    'אפשר: "שמירה" במקום "שמירת השינויים".',
    "对，繁体写作「儲存」，两种写法都在表里。",
  ],
};

/** Many scripts in one conversation: translating a program. */
export function mixed(): Conversation {
  const talk = new Talk(
    {
      name: "mixed",
      script: "Latin, Greek, Cyrillic, Hebrew, Han, Kana, Hangul",
      system: "You translate programs. Answer in the language of the question.",
      facts: [
        { key: "key", from: "user", pattern: /the key is `([\w.]+)`/u },
        { key: "ja", from: "assistant", pattern: /ja = 「([^」]+)」/u },
        { key: "he", from: "assistant", pattern: /he = "([^"]+)"/u },
        { key: "el", from: "assistant", pattern: /el = «([^»]+)»/u },
        { key: "zh", from: { tool: "terms", in: "output" }, pattern: /"zh":"([^"]+)"/u },
        { key: "ko", from: { tool: "terms", in: "output" }, pattern: /"ko":"([^"]+)"/u },
        { key: "limit", from: "user", pattern: /hard limit of (\d+) bytes/u },
        { key: "do not translate", from: "user", pattern: /never translate “([^”]+)”/u },
      ],
      tools: { terms: ({ key }) => ({ key, zh: "另存为", ko: "다른 이름으로 저장" }) },
    },
    155,
  );
  talk.user("We start with the menu; the key is `menu.file.save`, with a hard limit of 48 bytes.");
  talk.answer(
    'ja = 「保存」, he = "שמירה", el = «Αποθήκευση».',
    talk.call("terms", { key: "save" }, { zh: "保存", ko: "저장", uk: "Зберегти" }),
  );
  talk.pin(
    talk.user(
      "Two rules, as they are: never translate “Perdure Studio”; “…” is one character, not three. — ¡sin excepción! 例外なし。",
    ),
  );
  talk.answer("Both rules are noted as they are.");
  talk.chatter(34, BANK);
  talk.round("Which strings are done?");

  talk.user("Next: the key is `menu.file.save_as`.");
  talk.answer('ja = 「名前を付けて保存」, he = "שמירה בשם", el = «Αποθήκευση ως».');
  talk.chatter(36, BANK);
  talk.round("Look up the terms for it.", { toolName: "terms", input: { key: "save_as" } });

  talk.user("They changed the toolkit: there is a hard limit of 64 bytes now.");
  talk.answer("Then the long form fits.");
  talk.chatter(37, BANK);
  talk.round("Was fehlt noch?");

  talk.answer("New terms.", talk.dynamic("terms", { key: "close" }, { zh: "关闭", ko: "닫기" }));
  talk.user("Finally: the key is `menu.file.close`.");
  talk.answer('ja = 「閉じる」, he = "סגירה", el = «Κλείσιμο».');
  talk.chatter(37, BANK);
  talk.round("還有什麼？");
  return talk.end();
}
