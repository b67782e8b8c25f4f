import { crashMatrix, crashRun, type CrashScenario, type Program } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { allFacts, env, expectCovered, MATRIX_MS, ofType } from "../../crash/drive.ts";
import { bundleProgram } from "../../support/bundle-program.ts";
import { strays } from "../crash-kit.ts";
import type { SdkLook } from "./crash-program.ts";
import { type Hook, NETWORKS, type NetworkName, type SdkNetwork } from "./networks.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

interface Chat {
  readonly network: SdkNetwork;
  /** Where the life that is there now is delivered to. */
  url: string;
  /** How often it was told that something was taken. */
  taken: number;
  readonly timer: NodeJS.Timeout;
}
/** A network for each folder: all lives of a run are at the same one. */
const chats = new Map<string, Promise<Chat>>();

/** What Ada does next follows from what she sees; each of it is delivered until the network is told that it was taken. */
async function openChat(name: NetworkName): Promise<Chat> {
  const network = await NETWORKS[name]();
  const queue: Hook[] = [];
  const said = new Set<string>();
  const once = (what: string, hooks: () => readonly Hook[]) => {
    if (said.has(what)) return;
    said.add(what);
    queue.push(...hooks());
  };
  const act = () => {
    const texts = network.seen().map(({ text }) => text);
    once("long", () => network.says("long"));
    if (texts.some((text) => text.includes("THE END"))) once("pay", () => network.says("pay"));
    const asked = network.seen().find(({ text }) => text.includes("May I call"));
    const code = /YES (\w{4})/.exec(asked?.text ?? "")?.[1];
    const { presses } = network;
    if (asked !== undefined && presses === undefined) once("yes", () => network.says(`YES ${code}`));
    else if (presses !== undefined && asked !== undefined && asked.buttons.length > 0)
      once("yes", () => [presses("Approve")]);
  };
  let busy = false;
  const step = async () => {
    act();
    const [hook] = queue;
    if (busy || hook === undefined || chat.url === "") return;
    busy = true;
    const { headers, body } = hook;
    const status = await fetch(chat.url, { method: "POST", headers, body }).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) {
      queue.shift();
      chat.taken++;
    }
    busy = false;
  };
  const chat: Chat = { network, url: "", taken: 0, timer: setInterval(() => void step(), 15) };
  return chat;
}

afterEach(async () => {
  for (const chat of chats.values()) {
    const { network, timer } = await chat;
    clearInterval(timer);
    await network.close();
  }
  chats.clear();
});

interface Result extends SdkLook {
  readonly seen: readonly string[];
}

function scenario(name: NetworkName): CrashScenario<Result> {
  const chatOf = (child: Program) => {
    const chat = chats.get(child.dir) ?? openChat(name);
    chats.set(child.dir, chat);
    return chat;
  };
  const attach = async (child: Program) => {
    const chat = await chatOf(child);
    await child.waitFor(({ type }) => type === "asks");
    await child.send({ name, config: chat.network.config });
    chat.url = String((await child.waitFor(({ type }) => type === "serves")).url);
  };
  return {
    ...{ program, env, drive: attach, resume: attach, timeoutMs: 60_000 },
    async finish(child) {
      const { network } = await chatOf(child);
      const isOver = () => network.seen().some(({ text }) => text.includes("All is paid"));
      while (!isOver()) {
        if ((await Promise.race([child.exited, new Promise((resolve) => setTimeout(resolve, 20))])) !== undefined)
          throw new Error("The program is gone.");
      }
      await child.send({ type: "look" });
      const look = (await child.waitFor(({ type }) => type === "look")) as SdkLook;
      const seen = network.seen().map(({ text }) => shownOf(text));
      // Who answers in words is told what came of it: by the agent that reads, beside what the one says that answers.
      return { ...look, seen: seen.filter((text) => !/^Approved by \w+$/.test(text)) };
    },
  };
}

/** In an answer in words, its code differs from run to run. */
const shownOf = (text: string) => text.replaceAll(/(YES|NO) \w{4}/g, "$1");

test.each(Object.keys(NETWORKS) as NetworkName[])(
  "a conversation through the adapter for %s, killed after every commit: nothing is lost, and only what was being made may be there twice",
  { timeout: MATRIX_MS },
  async (name) => {
    const matrix = await crashMatrix({
      ...{ ...scenario(name), slack: 20, concurrency: 3 },
      check(outcome) {
        const { result } = outcome.after;
        const expected = outcome.reference.result;
        expect(ofType(allFacts(outcome), "failed")).toEqual([]);
        const others = strays(result.seen, expected.seen);
        // Only what was being made when the process died may be there twice, and the rows say so.
        expect(others.length).toBeLessThanOrEqual(name === "github" ? 0 : 1);
        for (const one of others) expect(expected.seen.some((text) => text.startsWith(one))).toBe(true);
        const repeated = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
        expect(repeated).toBeGreaterThanOrEqual(others.length);
        expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
        expect([result.inbound, result.turns, result.ran]).toEqual([expected.inbound, expected.turns, 1]);
      },
    });
    expect(matrix.reference.result.inbound).toBe(2);
    expectCovered(matrix, 10);
  },
);

test.each(Object.keys(NETWORKS) as NetworkName[])(
  "%s: killed as soon as the network was told that we have a message, it is answered",
  { timeout: MATRIX_MS },
  async (name) => {
    const deaths = [
      {
        async when(child: Program) {
          await child.waitFor(({ type }) => type === "serves");
          const chat = await chats.get(child.dir);
          while (chat?.taken === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        },
      },
    ];
    const reference = await crashRun({ ...scenario(name), deaths: [] });
    const { result } = await crashRun({ ...scenario(name), deaths });
    expect(strays(result.seen, reference.result.seen).length).toBeLessThanOrEqual(name === "github" ? 0 : 1);
    expect([result.inbound, result.ran]).toEqual([2, 1]);
  },
);
