import { expect, test } from "vitest";
import { createMask } from "../../src/admin/mask.ts";

const mask = createMask(["iban"], ["the-token-of-the-host"]);

test("values of secret names are hidden, in every spelling, and counts of tokens are not", () => {
  const given = {
    apiKey: "a",
    API_KEY: "b",
    "x-api-key": "c",
    nested: [{ clientSecret: { deep: 1 }, password: "p", Authorization: "Basic eA==" }],
    access_token: "t",
    IBAN: "DE00",
    tokens: 12,
    maxTokens: 5,
    token: "",
    secret: null,
    keyboard: "qwertz",
  };
  expect(mask.json(given)).toEqual({
    apiKey: "•••",
    API_KEY: "•••",
    "x-api-key": "•••",
    nested: [{ clientSecret: "•••", password: "•••", Authorization: "•••" }],
    access_token: "•••",
    IBAN: "•••",
    tokens: 12,
    maxTokens: 5,
    token: "",
    secret: null,
    keyboard: "qwertz",
  });
});

test("what looks like a key is hidden wherever it stands; ids and words stay", () => {
  const hidden = [
    "sk-proj-abcdefghijklmnop1234",
    "xoxb-1234567890-abcdef",
    "ghp_abcdefghijklmnopqrstuvwxyz",
    "AKIAABCDEFGHIJKLMNOP",
    `AIza${"x".repeat(35)}`,
    `123456789:${"A".repeat(35)}`,
    `eyJ${"a".repeat(12)}.${"b".repeat(12)}.${"c".repeat(12)}`,
    "the-token-of-the-host",
  ];
  for (const secret of hidden) expect(mask.text(`before ${secret} after`)).toBe("before ••• after");
  expect(mask.text("Bearer abcdefghijklmnop1234")).toBe("Bearer •••");
  expect(mask.json({ "sk-proj-abcdefghijklmnop1234": "x" })).toEqual({ "•••": "x" });
  const plain = "turn 0198c2f4-7d1e-7a3b-9c55-1234567890ab of Desk/anna cost 12 tokens; task-force-abcdefghijkl";
  expect(mask.text(plain)).toBe(plain);
});

test("texts that look like the beginnings of keys over and over are passed over once, however long they are", () => {
  const hostile = [
    "sk-".repeat(700_000),
    "-eyJabcdefghijkl".repeat(120_000),
    "eyJabcdefghijkl.".repeat(120_000),
    "-----BEGIN PRIVATE KEY-----".repeat(80_000),
    "-----BEGIN PRIVATE KEY-----\nMII".repeat(60_000),
  ];
  for (const text of hostile.slice(0, 2)) expect(mask.text(text) === text).toBe(true);
  expect(mask.text(hostile[2] ?? "").startsWith("•••.•••.")).toBe(true);
  for (const text of hostile.slice(3)) expect(mask.text(text) === text).toBe(true);
  expect(mask.text(`xoxb-${"a".repeat(8_000_000)}`).startsWith("•••")).toBe(true);
  // Keys in the midst of such texts are found all the same.
  const token = `eyJ${"a".repeat(12)}.${"b".repeat(12)}.${"c".repeat(12)}`;
  expect(mask.text(`host.example.${token}`)).toBe("host.example.•••");
  expect(mask.text(`id-${token}.more`)).toBe("id-•••.more");
  const key = "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC\nMII\n-----END RSA PRIVATE KEY-----";
  expect(mask.text(`-----BEGIN PRIVATE KEY----- ${key} after`)).toBe("-----BEGIN PRIVATE KEY----- ••• after");
});
