// What users do all day: calls, turns, approvals, rows, sockets that come and go. What was acknowledged is written down.
import { AgentChat, AgentClient } from "perdure/client";
import { WebSocket } from "ws";
import { type Random, seeded } from "../support/seeded.ts";

/** Everything that the host said yes to, by where it must be found. */
export class Books {
  readonly #keys = new Map<string, Set<string>>();
  /** What was tried. */
  tried = 0;
  /** What was refused or lost on its way, so that nobody may rely on it. */
  failed = 0;

  add(where: string, key: string): void {
    const keys = this.#keys.get(where) ?? new Set();
    this.#keys.set(where, keys.add(key));
  }
  places(): readonly (readonly [string, ReadonlySet<string>])[] {
    return [...this.#keys];
  }
  get count(): number {
    return this.places().reduce((sum, [, keys]) => sum + keys.size, 0);
  }
}

export const DESKS = 6;
export const CHATS = 6;
const BOXES = 3;
const PAUSE_MS = 40;
const CALL_MS = 5_000;
const LOOK_MS = 60_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts the load on a host. Resolves, when `over` says so, after the last of it. */
export async function putLoadOn(url: string, seed: number, books: Books, over: () => boolean): Promise<void> {
  let number = 0;
  const fresh = (kind: string) => `${kind}-${++number}`;
  const clients: AgentClient[] = [];
  const clientOf = (agent: string, name: string) => {
    const client = new AgentClient({ agent, name, host: url, maxReconnectionDelay: 300, defaultCallTimeout: CALL_MS });
    clients.push(client);
    return client;
  };
  const desks = Array.from({ length: DESKS }, (_, at) => clientOf("Desk", `d${at}`));
  const receipts = new Map<string, (applied: boolean) => void>();
  for (const desk of desks) {
    desk.addEventListener("message", ({ data }) => {
      if (typeof data !== "string" || !data.startsWith('{"type":"perdure_rows_receipt"')) return;
      const { txid, applied } = JSON.parse(data) as { txid: string; applied: boolean };
      receipts.get(txid)?.(applied);
    });
  }

  const work: readonly ((random: Random) => Promise<void>)[] = [
    ...Array.from({ length: 2 }, () => async (random: Random) => {
      const at = random(DESKS);
      const kind = ["put", "later", "enqueue"][random(3)] as string;
      const key = fresh(kind);
      await desks[at]?.call(kind, [key]);
      books.add(`Desk d${at} found`, key);
    }),
    async (random) => {
      const [at, box, key] = [random(DESKS), `b${random(BOXES)}`, fresh("child")];
      await desks[at]?.call("child", [box, key]);
      books.add(`Desk d${at} childFound ${box}`, key);
    },
    async (random) => {
      const [at, key] = [random(DESKS), fresh("row")];
      const changes = [{ table: "notes", key, operation: "insert", value: { id: key, text: "x".repeat(100) } }];
      const done = new Promise<boolean>((resolve) => receipts.set(key, resolve));
      desks[at]?.send(JSON.stringify({ type: "perdure_rows_write", txid: key, changes }));
      const applied = await Promise.race([done, pause(CALL_MS).then(() => false)]);
      receipts.delete(key);
      if (!applied) throw new Error("no receipt");
      books.add(`Desk d${at} rows`, key);
    },
    ...["hello", "look", "help"].map((text) => async (random: Random) => {
      const [at, id] = [random(CHATS), fresh(text)];
      await postTurn(url, `mind/m${at}`, id, text);
      books.add(`Mind m${at} answered`, id);
    }),
    async (random) => {
      const name = `b${random(CHATS)}`;
      await approve(url, name, fresh("pay"), over, (call) => books.add(`Mind ${name} paid`, call));
    },
    async (random) => {
      const name = `t${random(CHATS)}`;
      const client = new AgentClient({ agent: "Talk", name, host: url, maxReconnectionDelay: 300 });
      const chat = new AgentChat(client);
      const leave = chat.subscribe(() => {});
      try {
        await Promise.race([client.ready, pause(CALL_MS).then(() => Promise.reject(new Error("not ready")))]);
        await Promise.race([chat.sendMessage({ text: "hello" }), pause(CALL_MS * 4)]);
        const { messages } = chat;
        const asked = messages.findLast(({ role }) => role === "user");
        if (messages.at(-1)?.role !== "assistant" || chat.getSnapshot().status !== "ready" || asked === undefined) {
          throw new Error("no answer");
        }
        books.add(`Talk ${name} answered`, asked.id);
      } finally {
        leave();
        client.close();
      }
    },
    async (random) => {
      const path = [`desk/d${random(DESKS)}`, `mind/m${random(CHATS)}`, `talk/t${random(CHATS)}`][random(3)] ?? "";
      const ws = new WebSocket(`${url.replace("http", "ws")}/agents/${path}`);
      ws.on("error", () => undefined);
      await pause(20 + random(300));
      if (random(2) === 0) ws.close();
      else ws.terminate();
    },
  ];

  const loop = async (act: (random: Random) => Promise<void>, at: number) => {
    const random = seeded(seed + at);
    while (!over()) {
      books.tried++;
      try {
        await act(random);
      } catch {
        books.failed++;
        await pause(200);
      }
      await pause(PAUSE_MS + random(PAUSE_MS));
    }
  };
  await Promise.all(work.map(loop));
  for (const client of clients) client.close();
}

async function postTurn(url: string, path: string, id: string, text: string): Promise<void> {
  const messages = [{ id, role: "user", parts: [{ type: "text", text }] }];
  const response = await fetch(`${url}/agents/${path}/chat`, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify({ messages, requestId: id, trigger: "submit-message" }),
    signal: AbortSignal.timeout(CALL_MS),
  });
  if (response.status !== 202) throw new Error(`${response.status}`);
}

interface Part {
  readonly toolCallId?: string;
  readonly state?: string;
}

/** Asks for something that needs a yes, waits for the question, and says yes. */
async function approve(
  url: string,
  name: string,
  id: string,
  over: () => boolean,
  taken: (call: string) => void,
): Promise<void> {
  await postTurn(url, `mind/${name}`, id, "pay");
  while (!over()) {
    await pause(50);
    const signal = AbortSignal.timeout(CALL_MS);
    const response = await fetch(`${url}/agents/mind/${name}/get-messages?last=1`, { signal }).catch(() => undefined);
    if (response?.ok !== true) continue;
    const [message] = (await response.json()) as { parts: Part[] }[];
    const asked = message?.parts.find(({ state }) => state === "approval-requested");
    if (asked?.toolCallId === undefined) continue;
    const answer = await fetch(`${url}/agents/mind/${name}/chat/tools/${asked.toolCallId}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ approved: true }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const { changed } = (await answer.json()) as { changed?: boolean };
    if (changed === true) taken(asked.toolCallId);
    return;
  }
}

/** What is acknowledged and cannot be found, what says that it was cut off, and what was done twice that must be done once. */
export async function compare(
  url: string,
  books: Books,
): Promise<{ readonly lost: string[]; readonly cut: string[]; readonly twice: string[] }> {
  const lost: string[] = [];
  const cut: string[] = [];
  const twice: string[] = [];
  for (const [where, keys] of books.places()) {
    const [agent = "", name = "", method = "", ...args] = where.split(" ");
    const client = new AgentClient({ agent, name, host: url, defaultCallTimeout: LOOK_MS });
    // Whoever does not answer is named, and asked again with the next look.
    const ask = (name: string) => client.call(name, args).catch((thrown: unknown) => String(thrown));
    const found = (await ask(method)) as string[] | string;
    // A call that a kill cut off when it was about to run is not run again, and says so.
    const told = new Set(method === "paid" ? ((await ask("unpaid")) as string[] | string) : []);
    client.close();
    if (typeof found === "string") {
      lost.push(`${where}: ${found}`);
      continue;
    }
    const all = new Set(found);
    for (const key of keys) {
      if (all.has(key)) continue;
      if (told.has(key)) cut.push(`${where}: ${key}`);
      else lost.push(`${where}: ${key}`);
    }
    if (method === "paid" && found.length > all.size) twice.push(where);
  }
  return { lost, cut, twice };
}
