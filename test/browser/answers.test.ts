import { expect, test } from "vitest";
import { AFTER_REASONING, ERROR, MARKDOWN, REASONING } from "../../examples/start/model/guide-text.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import { words } from "./words.ts";

const stage = useStage();

test("a suggestion starts a conversation: question and answer, the same as stored, with an address and a title", async () => {
  const tab = await stage.openTab();
  await tab.at("empty").waitFor();
  await soon(() => tab.at("model").textContent()).toContain("Built-in guide");
  await tab.at("suggestion").first().click();
  await tab.sees(() => tab.answers().count(), 1);
  await tab.settles();
  const [question, answer, ...more] = await stage.app.stored(tab.conversation());
  expect(more).toEqual([]);
  const shown = await tab.messages();
  expect(shown.map(({ id, role }) => [id, role])).toEqual([
    [question?.id, "user"],
    [answer?.id, "assistant"],
  ]);
  expect(shown[0]?.text).toBe("What can you do?");
  expect(shown[1]?.text).toContain("I am the built-in guide");
  await soon(() => tab.at("empty").isVisible()).toBe(false);
  await tab.sees(() => tab.page.title(), "What can you do? · Perdure");
  await tab.sees(() => tab.at("conversation-item").locator(".row-title").allTextContents(), ["What can you do?"]);
});

test("markdown becomes headings, lists, a table, code that can be copied, and links that leave the page alone", async () => {
  const tab = await stage.openTab();
  await tab.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tab.ask("Show me some markdown");
  const answer = tab.lastAnswer();
  await soon(() => answer.locator("h3").textContent()).toBe("A heading");
  await soon(() => answer.locator("h4").allTextContents()).toEqual(["A list", "A table", "Some code"]);
  await soon(() => answer.locator("ol > li").count()).toBe(3);
  await soon(() => answer.locator("table th").allTextContents()).toEqual([
    "What",
    "Survives a reload",
    "Survives a restart",
  ]);
  await soon(() => answer.locator("table tbody tr").count()).toBe(3);
  await soon(() =>
    answer.locator("input[type=checkbox]").evaluateAll((all) => all.map((box) => box.matches(":checked"))),
  ).toEqual([true, false]);
  await soon(() => answer.locator("strong").textContent()).toBe("strong");
  await soon(() => answer.locator("del").textContent()).toBe("a mistake");
  const link = answer.getByRole("link", { name: "a link" });
  await soon(() => link.getAttribute("href")).toBe("https://commonmark.org/help/");
  await soon(() => link.getAttribute("target")).toBe("_blank");
  await soon(() => link.getAttribute("rel")).toContain("noopener");

  const clipboard = () => tab.page.evaluate(() => navigator.clipboard.readText());
  await answer.getByTestId("copy-code").click();
  const code = MARKDOWN.slice(MARKDOWN.indexOf("```ts\n") + 6, MARKDOWN.lastIndexOf("\n```"));
  await tab.sees(clipboard, code);
  await answer.getByTestId("copy").click();
  await tab.sees(clipboard, MARKDOWN);
  await soon(() => answer.getByRole("button", { name: "Copied" }).count()).toBeGreaterThan(0);
});

test("what comes from a model cannot run as a program or be loaded as a picture", async () => {
  const tab = await stage.openTab();
  const evil = `<img src=x onerror="console.error('ran')"><script>console.error('ran')</script> [x](javascript:alert(1))`;
  await tab.ask(evil);
  const [question] = await tab.messages();
  expect(question?.text).toBe(evil);
  await soon(() => tab.at("message").locator("img, script, a[href^=javascript]").count()).toBe(0);
});

test("reasoning is apart from the answer, folded when it is over, and opens", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  const reasoning = tab.at("reasoning");
  await soon(() => tab.lastText()).toBe(AFTER_REASONING);
  await soon(() => reasoning.textContent()).not.toContain("weigh its options");
  await reasoning.getByRole("button").click();
  await soon(async () => words((await reasoning.locator(".reasoning-text").textContent()) ?? "")).toEqual(
    words(REASONING),
  );
  await tab.reload();
  await tab.sees(() => tab.at("reasoning").count(), 1);
});

test("an error is told in words, what was said stays, and trying again asks again", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me an error");
  await tab.at("error").waitFor();
  await soon(() => tab.at("error").textContent()).toContain(ERROR);
  await soon(() => tab.lastText()).toContain("I will now fail");
  await soon(() => tab.at("composer-input").isEnabled()).toBe(true);

  const before = await stage.app.stored(tab.conversation());
  await tab.at("retry").click();
  await soon(async () => (await stage.app.stored(tab.conversation())).at(-1)?.id).not.toBe(before.at(-1)?.id);
  await tab.at("error").waitFor();
  await tab.settles();
  await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual(["user", "assistant"]);

  await tab.ask("Hello");
  await soon(() => tab.at("error").count()).toBe(0);
  await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
});

test("a file and a picture go along: shown before, shown in the message, and told by the answer", async () => {
  const tab = await stage.openTab();
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await tab.at("attach-input").setInputFiles([
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("to be read") },
    { name: "dot.png", mimeType: "image/png", buffer: png },
    { name: "wrong.txt", mimeType: "text/plain", buffer: Buffer.from("a mistake") },
  ]);
  await tab.sees(() => tab.at("attachment").count(), 3);
  await tab.at("attachment").getByRole("button", { name: "Remove wrong.txt" }).click();
  await tab.sees(() => tab.at("attachment").locator(".draft-name").allTextContents(), ["notes.txt", "dot.png"]);
  await tab.ask("What did I send?");
  await soon(() => tab.at("attachment").count()).toBe(0);
  const question = tab.at("message").first();
  await soon(() => question.locator("a[download]").getAttribute("download")).toBe("notes.txt");
  const picture = question.locator("img");
  await tab.sees(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), 1);
  await soon(() => tab.lastText()).toContain("notes.txt: text/plain, 10 bytes");
  await soon(() => tab.lastText()).toContain(`dot.png: image/png, ${png.length} bytes`);
  await tab.reload();
  await tab.sees(() => tab.at("message").first().locator("img").count(), 1);
});

test("a file that is too large is refused in words and nothing is sent", async () => {
  const tab = await stage.openTab();
  const buffer = Buffer.alloc(2_000_000, "x");
  await tab.at("attach-input").setInputFiles({ name: "huge.bin", mimeType: "application/octet-stream", buffer });
  await soon(() => tab.at("attach-problem").textContent()).toContain("huge.bin is too large");
  await soon(() => tab.at("attachment").count()).toBe(0);
  await soon(() => tab.at("send").isDisabled()).toBe(true);
});
