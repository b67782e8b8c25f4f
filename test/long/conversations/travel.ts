import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "Wie lange braucht man vom Bahnhof bis zur Altstadt, wenn man {n} Minuten Puffer einrechnet?",
    "Gibt es dort ein Café, das auch montags geöffnet ist und draußen Plätze hat?",
    "Lohnt sich der Umweg über die Küstenstraße, oder verlieren wir dabei zu viel Zeit?",
    "Meine Schwester möchte unbedingt das Museum sehen, obwohl wir nur {n} Stunden haben.",
    "Kann man die Fahrräder auch tageweise ausleihen und im Zug mitnehmen?",
    "Was kostet das Parken ungefähr, wenn wir den Wagen über Nacht stehen lassen?",
  ],
  answers: [
    "Zu Fuß sind es etwa {n} Minuten, mit der Straßenbahn höchstens die Hälfte.",
    "Das kleine Café am Brunnen hat montags offen; draußen stehen rund {n} Tische.",
    "Die Küstenstraße ist schöner, kostet aber fast eine Stunde mehr und viele Kurven.",
    "Für das Museum würde ich mindestens zwei Stunden einplanen, sonst bleibt nur der Eingangsbereich.",
    "Ja, tageweise geht es; im Zug braucht jedes Rad eine eigene Karte für {n} Euro.",
    "Über Nacht liegt es meist zwischen zwölf und achtzehn Euro, im Zentrum eher darüber.",
  ],
};

/** A journey that is planned anew again and again. */
export function travel(): Conversation {
  const talk = new Talk(
    {
      name: "travel",
      script: "German",
      system: "Du planst Reisen. Antworte auf Deutsch und sieze die Person.",
      facts: [
        { key: "Abreise", from: "user", pattern: /fahren (?:jetzt |nun )?am (\d+\. \p{L}+ \d{4}) los/u },
        { key: "Budget", from: "user", pattern: /höchstens (\d[\d.]* Euro)/u },
        { key: "Allergie", from: "user", pattern: /allergisch gegen (\p{L}+)/u },
        {
          key: "Buchungsnummer",
          from: { tool: "book_hotel", in: "output" },
          pattern: /"confirmation":"([A-Z0-9-]+)"/u,
        },
        { key: "Flug", from: { tool: "search_flights", in: "output" }, pattern: /"best":"([A-Z]{2} ?\d+)"/u },
        { key: "Verbot", from: "user", pattern: /auf keinen Fall (über [\p{L} ]+?)[,.]/u },
        { key: "Personen", from: "user", pattern: /Wir sind (\d+) Personen/u },
        { key: "Zusage", from: "assistant", pattern: /Ich verspreche Ihnen: ([^.]+)\./u },
        { key: "Storniert", from: { tool: "cancel_hotel", in: "error" }, pattern: /bis (\d+\. \p{L}+) kostenlos/u },
      ],
      tools: { search_flights: ({ from }) => ({ from, best: "LH 1802", price: { amount: 189.5, currency: "EUR" } }) },
    },
    22,
  );
  talk.user("Wir möchten nach Portugal. Wir sind 3 Personen und haben höchstens 2.400 Euro.");
  talk.answer("Gern. Wann soll es losgehen?");
  talk.user("Wir fahren am 14. Mai 2027 los. Mein Sohn ist allergisch gegen Haselnüsse.");
  talk.answer(
    "Ich habe Flüge gefunden.",
    talk.dynamic(
      "search_flights",
      { from: "FRA", to: "LIS" },
      {
        best: "TP 571",
        options: [
          { code: "TP 571", price: 211 },
          { code: "LH 1166", price: 240 },
        ],
      },
    ),
  );
  talk.pin(
    talk.user("Wichtig, bitte wörtlich behalten: »Frühstück vor sieben, Zimmer ohne Teppich, kein Zimmer zur Straße.«"),
  );
  talk.answer("Das merke ich mir wörtlich.");
  talk.chatter(36, BANK);
  talk.round("Fassen Sie bitte kurz zusammen, was feststeht.");

  talk.user("Bitte auf keinen Fall über Madrid fliegen, das ging schon zweimal schief.");
  talk.answer(
    "Ich verspreche Ihnen: kein Umstieg in Madrid und keine Nachtflüge. Das Hotel ist reserviert.",
    talk.call(
      "book_hotel",
      { name: "Casa do Rio", nights: 6 },
      { ok: true, confirmation: "CDR-77Q1-PT", total: { amount: 812, currency: "EUR" } },
    ),
  );
  talk.chatter(38, BANK);
  talk.round("Gibt es einen günstigeren Flug?", { toolName: "search_flights", input: { from: "STR", to: "OPO" } });

  talk.user(
    "Es hat sich etwas geändert: wir fahren jetzt am 21. Mai 2027 los, und wir geben höchstens 2.900 Euro aus.",
  );
  talk.answer(
    "Das Hotel lässt sich noch nicht umbuchen.",
    talk.failed(
      "cancel_hotel",
      { confirmation: "CDR-77Q1-PT" },
      "409: Umbuchung nur telefonisch, Stornierung bis 30. April kostenlos.",
    ),
  );
  talk.chatter(39, BANK);
  talk.round("Reicht das Geld noch?");

  talk.user("Meine Mutter kommt mit. Wir sind 4 Personen.");
  talk.answer(
    "Dann brauchen wir ein Zimmer mehr.",
    talk.dynamic("book_hotel", { name: "Casa do Rio", rooms: 2 }, { ok: true, confirmation: "CDR-91X4-PT" }),
  );
  talk.chatter(39, BANK);
  talk.round("Was muss ich heute noch tun?");
  return talk.end();
}
