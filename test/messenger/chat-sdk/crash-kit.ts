// A conversation through a published adapter, in a process that is killed.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { CrashScenario, Program } from "perdure/testing";
import { afterEach } from "vitest";
import { env } from "../../crash/drive.ts";
import { bundleProgram } from "../../support/bundle-program.ts";
import type { SdkLook } from "./crash-program.ts";
import type { FakeMessage } from "./fake-api.ts";
import { type Hook, NETWORKS, type NetworkName, type SdkNetwork } from "./networks.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

interface Chat {
  readonly network: SdkNetwork;
  readonly files: Server;
  /** Where the life that is there now is delivered to. */
  url: string;
  /** How often it was told that something was taken. */
  taken: number;
  readonly timer: NodeJS.Timeout;
}
/** A network for each folder: all lives of a run are at the same one. */
export const chats = new Map<string, Promise<Chat>>();

const PICTURE = { name: "p.png", mediaType: "image/png", bytes: new Uint8Array(1_000).fill(1) };

/** What stands at public addresses of the network: `/?url=…`. */
async function servedFiles(network: SdkNetwork): Promise<Server> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://127.0.0.1").searchParams.get("url") ?? "";
    const bytes = network.opens?.(url, request.headers.authorization);
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** What Ada does next follows from what she sees; each of it is delivered until the network is told that it was taken. */
async function openChat(name: NetworkName, acts: string | undefined): Promise<Chat> {
  const network = await NETWORKS[name]();
  const files = await servedFiles(network);
  const queue: Hook[] = [];
  const said = new Set<string>();
  const once = (what: string, hooks: () => readonly Hook[]) => {
    if (said.has(what)) return;
    said.add(what);
    queue.push(...hooks());
  };
  const act = () => {
    const texts = network.seen().map(({ text }) => text);
    if (acts === "files") return once("look", () => network.sends?.(PICTURE, "look") ?? []);
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
  const chat: Chat = { network, files, url: "", taken: 0, timer: setInterval(() => void step(), 15) };
  return chat;
}

afterEach(async () => {
  for (const chat of chats.values()) {
    const { network, files, timer } = await chat;
    clearInterval(timer);
    files.closeAllConnections();
    files.close();
    await network.close();
  }
  chats.clear();
});

interface Result extends SdkLook {
  readonly seen: readonly string[];
}

/** @param more for the environment of the program */
export function scenario(name: NetworkName, more: Readonly<Record<string, string>> = {}): CrashScenario<Result> {
  const chatOf = (child: Program) => {
    const chat = chats.get(child.dir) ?? openChat(name, more.ACTS);
    chats.set(child.dir, chat);
    return chat;
  };
  const attach = async (child: Program) => {
    const chat = await chatOf(child);
    await child.waitFor(({ type }) => type === "asks");
    const { port } = chat.files.address() as AddressInfo;
    await child.send({ name, config: chat.network.config, files: `http://127.0.0.1:${port}` });
    chat.url = String((await child.waitFor(({ type }) => type === "serves")).url);
  };
  return {
    ...{ program, env: { ...env, ...more }, drive: attach, resume: attach, timeoutMs: 60_000 },
    async finish(child) {
      const { network } = await chatOf(child);
      const last = more.ACTS === "files" ? "file of 300" : "All is paid";
      const isOver = () => network.seen().some((one) => shownOf(one).includes(last));
      while (!isOver()) {
        if ((await Promise.race([child.exited, new Promise((resolve) => setTimeout(resolve, 20))])) !== undefined)
          throw new Error("The program is gone.");
      }
      await child.send({ type: "look" });
      const look = (await child.waitFor(({ type }) => type === "look")) as SdkLook;
      const seen = network.seen().map(shownOf);
      // Who answers in words is told what came of it: by the agent that reads, beside what the one says that answers.
      return { ...look, seen: seen.filter((text) => !/^Approved by \w+$/.test(text)) };
    },
  };
}

/** In an answer in words, its code differs from run to run. */
const shownOf = ({ text, file }: Pick<FakeMessage, "text" | "file">) =>
  file === undefined ? text.replaceAll(/(YES|NO) \w{4}/g, "$1") : `file of ${file.bytes.length}`;
