import { readyTab } from "./harness.tsx";
import { test } from "vitest";
import { startTalk } from "./talk.ts";
const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
test("dbg", async () => {
    const { host, say } = await startTalk({ script: [long, "fresh"] });
    const tab = await readyTab(host);
    const other = await readyTab(host);
    tab.send("a");
    await say(2);
    for (const one of [tab, other]) await one.waitFor(({ lines }) => lines[1] === "assistant: one two ");
    const n = tab.line.received.length;
    const v = tab.views.length;
    other.chat().clearHistory();
    await new Promise((r) => setTimeout(r, 300));
    console.log(JSON.stringify(tab.line.received.slice(n), null, 1));
    console.log(JSON.stringify(tab.views.slice(v), null, 0));
});
