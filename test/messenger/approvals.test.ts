import { expect, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, BEN, DM, type KitOptions, openKit } from "./kit.ts";

async function openAsking(options: KitOptions = {}) {
  const ran: unknown[] = [];
  const pay = serverTool((input) => (ran.push(input), "paid"), { needsApproval: true });
  let call = 0;
  const kit = await openKit({
    tools: { pay },
    script: () =>
      call++ === 0 ? { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "All is paid.",
    ...options,
  });
  const question = () => kit.network.seen(DM, "agent").find(({ buttons }) => buttons.length > 0);
  return { ...kit, kit, ran, question };
}

test("a question is asked with buttons below what was said; a yes runs the call once, and the answer goes on", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  expect(kit.texts()[0]).toBe("I will pay.");
  expect(question()?.text).toContain('"amount": 5');
  const id = question()?.id ?? "";
  const press = kit.network.presses(DM, ADA, id, "Approve");
  kit.network.repeats(press);
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  expect(kit.texts()[0]).toBe("I will pay.");
  await kit.until(() => expect(kit.texts()[1]).toContain("Approved by Ada"));
  expect(kit.texts()[2]).toBe("All is paid.");
  expect(question()).toBeUndefined();
  expect(ran).toEqual([{ amount: 5 }]);
  expect(kit.network.told).toMatchObject([
    { text: "Approved by Ada" },
    { text: expect.stringMatching(/Approved by Ada|not open/) as string },
  ]);
  await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
});

test("a no ends the call, and a second press is told who said it", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  const id = question()?.id ?? "";
  kit.network.presses(DM, ADA, id, "Reject");
  kit.network.presses(DM, ADA, id, "Approve");
  await kit.until(() =>
    expect(kit.network.told.map(({ text }) => text)).toEqual(["Rejected by Ada", "Rejected by Ada"]),
  );
  await kit.until(() => expect(kit.texts()[1]).toContain("Rejected by Ada"));
  expect(ran).toEqual([]);
});

test("a stranger's press changes nothing, and the stranger is told", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  kit.network.presses(DM, BEN, question()?.id ?? "", "Approve");
  await kit.until(() =>
    expect(kit.network.told).toMatchObject([{ text: expect.stringContaining("You may not") as string }]),
  );
  expect(ran).toEqual([]);
  expect(question()).toBeDefined();
});

test("a press counts for what was shown: with other arguments it does nothing, and says so", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  // As if the call had been asked about anew, with another amount, behind what the person looks at.
  const holder = kit.ports[kit.lives.indexOf(kit.holder())];
  holder?.sql("UPDATE perdure_tool_call SET digest = 'of something else' WHERE status = 'asked'");
  kit.network.presses(DM, ADA, question()?.id ?? "", "Approve");
  await kit.until(() => expect(kit.network.told).toHaveLength(1));
  expect(kit.network.told[0]?.text).not.toContain("Approved");
  expect(ran).toEqual([]);
});

test("in a group nobody may answer unless the app says who", async () => {
  const group = { dm: false } as const;
  const pay = serverTool(() => "paid", { needsApproval: true });
  let call = 0;
  const script = () => (call++ === 0 ? { toolCalls: [{ toolName: "pay", input: {} }] } : "Done.");
  const kit = await openKit({ tools: { pay }, script, approvers: ({ author }) => author.id === "8" });
  kit.network.says("memory:-1", ADA, "@memory_bot pay", group);
  const question = () => kit.network.seen("memory:-1", "agent").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  kit.network.presses("memory:-1", ADA, question()?.id ?? "", "Approve", group);
  await kit.until(() => expect(kit.network.told).toHaveLength(1));
  expect(kit.network.told[0]?.text).toContain("You may not");
  kit.network.presses("memory:-1", BEN, question()?.id ?? "", "Approve", group);
  await kit.until(() => expect(kit.texts("memory:-1").at(-1)).toBe("Done."));
});

/** Ada is asked in a group, and Ben says something. */
async function openGroupQuestion() {
  const GROUP = "memory:-1";
  const group = { dm: false } as const;
  const ran: unknown[] = [];
  const pay = serverTool((input) => (ran.push(input), "paid"), { needsApproval: true });
  const kit = await openKit({
    tools: { pay },
    approvers: ({ author }) => author.id === "7",
    script: ({ userText, step }) => {
      if (!userText.includes("pay")) return `You said: ${userText}`;
      return step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "All is paid.";
    },
  });
  kit.network.says(GROUP, ADA, "@memory_bot pay", group);
  const question = () => kit.network.seen(GROUP, "agent").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  const says = (who: typeof ADA, text: string) => kit.network.says(GROUP, who, text, group);
  const bens = says(BEN, "@memory_bot hello");
  const held = () =>
    kit
      .holder(GROUP)
      .listDeliveries({ state: "held" })
      .filter(({ kind }) => kind === "answer");
  await kit.until(() => expect(held()).toHaveLength(1));
  return { kit, ran, question, says, bens, held, GROUP, group };
}

test("in a group what others say waits for the answer of who was asked, a restart included", async () => {
  const { kit, ran, question, says, bens, held, GROUP, group } = await openGroupQuestion();
  kit.network.repeats(bens);
  kit.network.repeats({ ...bens, kind: "edit", keys: ["update:edit"], text: "@memory_bot hello there" });
  says(BEN, "@memory_bot and this");
  await kit.until(() => expect(held()).toHaveLength(2));
  expect(question()).toBeDefined();
  expect(kit.model.calls).toHaveLength(1);
  await kit.restart();
  kit.network.presses(GROUP, ADA, question()?.id ?? "", "Approve", group);
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(4));
  expect(kit.texts(GROUP).slice(-3)).toEqual([
    "All is paid.",
    "You said: Ben: @memory_bot hello there",
    "You said: Ben: @memory_bot and this",
  ]);
  expect(ran).toEqual([{ amount: 5 }]);
  await kit.until(() => expect(kit.holder(GROUP).listDeliveries({ state: ["open", "held"] })).toEqual([]));
});

test("who was asked may say something else instead: that ends the question, and what waited is answered after it", async () => {
  const { kit, ran, says, GROUP } = await openGroupQuestion();
  says(ADA, "@memory_bot never mind");
  await kit.until(() => expect(kit.texts(GROUP).at(-1)).toBe("You said: Ben: @memory_bot hello"));
  expect(kit.texts(GROUP).at(-2)).toBe("You said: Ada: @memory_bot never mind");
  expect(ran).toEqual([]);
});

test("what waits in a group can be taken back by /stop of who said it, and is erased with its author", async () => {
  const { kit, says, held, question, GROUP } = await openGroupQuestion();
  says({ id: "9", name: "Cy" }, "@memory_bot I am Cy");
  await kit.until(() => expect(held()).toHaveLength(2));
  says(BEN, "/stop");
  await kit.until(() => expect(held()).toHaveLength(1));
  await kit.holder(GROUP).erase({ subject: "memory:9" });
  expect(held()).toEqual([]);
  expect(question()).toBeDefined();
  expect(kit.model.calls).toHaveLength(1);
});

test("a question that is answered elsewhere shows who answered, and its buttons are gone", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  const holder = kit.holder();
  const [pending] = holder.pendingApprovals();
  expect(holder.answerApproval(pending?.toolCallId ?? "", true, { approver: "Chris" })).toBe(true);
  await kit.until(() => expect(kit.texts()[1]).toContain("Approved by Chris"));
  expect(question()).toBeUndefined();
  await kit.until(() => expect(kit.texts()[2]).toBe("All is paid."));
  expect(ran).toHaveLength(1);
});

test("the buttons work after a restart; one that nobody made does nothing", async () => {
  const { kit, ran, question } = await openAsking();
  kit.network.says(DM, ADA, "pay it");
  await kit.until(() => expect(question()).toBeDefined());
  await kit.until(() => expect(kit.deliveries().some(({ state }) => state === "held")).toBe(true));
  await kit.restart();
  const id = question()?.id ?? "";
  const data = question()?.buttons[0]?.data ?? "";
  const press = kit.network.presses(DM, ADA, id, "Approve", {
    press: { id: "forged", data: `${data.slice(0, -4)}0000` },
  });
  expect(press.press?.id).toBe("forged");
  await kit.until(() =>
    expect(kit.network.told).toMatchObject([{ press: "forged", text: "This question is not open any more." }]),
  );
  expect(ran).toEqual([]);
  kit.network.presses(DM, ADA, id, "Approve");
  await kit.until(() => expect(kit.texts().at(-1)).toBe("All is paid."));
  expect(ran).toHaveLength(1);
});

test("every act of somebody at a messenger is asked about, and may be refused", async () => {
  const asked: string[] = [];
  const { kit } = await openAsking({
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined, act: string) {
          asked.push(`${identity?.id ?? "nobody"} ${act}`);
          return identity?.id !== "memory:8" && act !== "tool.approve";
        }
      },
  });
  kit.network.says("memory:8", BEN, "hi");
  kit.network.says(DM, ADA, "pay it");
  const question = () => kit.network.seen(DM, "agent").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  kit.network.presses(DM, ADA, question()?.id ?? "", "Approve");
  await kit.until(() => expect(kit.network.told).toMatchObject([{ text: '"tool.approve" is not allowed here.' }]));
  kit.network.says(DM, ADA, "/stop");
  await kit.until(() => expect(asked).toContain("memory:7 chat.cancel"));
  expect(asked).toEqual(
    expect.arrayContaining(["memory:8 chat.submit", "memory:7 chat.submit", "memory:7 tool.approve"]),
  );
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(['"chat.submit" is not allowed here.']));
});

test("without buttons a question is answered in words, by who may; other words are a message", async () => {
  const { kit, ran } = await openAsking({ network: { buttonData: 0, editable: false } });
  kit.network.says(DM, ADA, "pay it");
  const code = () => /YES (\w{4}) or NO/.exec(kit.texts().join())?.[1];
  await kit.until(() => expect(code()).toBeDefined());
  kit.network.says(DM, BEN, `YES ${code() ?? ""}`);
  await kit.until(() => expect(kit.texts().join()).toContain("You may not answer this."));
  expect(ran).toEqual([]);
  const said = kit.network.says(DM, ADA, `yes ${code()?.toLowerCase() ?? ""}`);
  kit.network.repeats(said);
  await kit.until(() => expect(kit.texts()).toContain("All is paid."));
  await kit.until(() => expect(kit.texts()).toContain("Approved by Ada"));
  expect(ran).toEqual([{ amount: 5 }]);
  await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
  kit.network.says(DM, ADA, "no more");
  await kit.until(() => expect(kit.texts().filter((text) => text === "All is paid.")).toHaveLength(2));
});

test("a button under a growing answer stops it, and goes with its end", async () => {
  const never = new Promise<never>(() => {});
  const kit = await openKit({
    delivery: { stopButton: "Stop" },
    tools: { wait: serverTool(() => never) },
    script: () => ({ text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] }),
  });
  kit.network.says(DM, ADA, "go");
  const [message] = await (async () => {
    await kit.until(() => expect(kit.network.seen(DM, "agent")[0]?.buttons).toMatchObject([{ label: "Stop" }]));
    return kit.network.seen(DM, "agent");
  })();
  kit.network.presses(DM, ADA, message?.id ?? "", "Stop");
  await kit.until(() => expect(kit.texts()).toEqual(["Working.\n\n(stopped)"]));
  expect(kit.network.seen(DM, "agent")[0]?.buttons).toEqual([]);
  await kit.until(() => expect(kit.network.told).toMatchObject([{ text: "Stopped." }]));
});
