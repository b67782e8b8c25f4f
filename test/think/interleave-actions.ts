// What can happen to a conversation, one thing at a time. An action that does not apply does nothing.
import type { UIMessage } from "ai";
import type { InboxItem, SubmitResult, Withdrawal } from "perdure/chat";
import { isPending, type ToolPart, toolName, toolParts } from "../../src/message/types.ts";
import { BUDGET_TOOL } from "../../src/message/told-line.ts";
import type { Client } from "./interleave-client.ts";
import { CLIENT_TOOL } from "./interleave-model.ts";
import { at, hashOf, random } from "./interleave-random.ts";
import { type Request, textOf } from "./interleave-record.ts";
import { settle, type World } from "./interleave-world.ts";

const WEIGHTS = {
  send: 10,
  save: 1,
  submission: 1.5,
  continue: 0.5,
  editWaiting: 2.5,
  editOld: 2,
  regenerate: 2,
  withdraw: 2.5,
  reorder: 2.5,
  stop: 3,
  answer: 5,
  progress: 12,
  wait: 2,
  idle: 1,
  leave: 1.5,
  come: 3,
  repeat: 1,
  crash: 2,
  crashSoon: 2,
  stopHost: 1,
};

export type ActionKind = keyof typeof WEIGHTS;

/** One action. Numbers from 0 to 1 say which of what there is then. */
export interface Action {
  readonly kind: ActionKind;
  /** Names what it makes. Stays when other actions are left out. */
  readonly n: number;
  readonly which: number;
  readonly how: number;
  /** Whether the next one comes before this one has had any effect beyond its own. */
  readonly quick: boolean;
}

const FEWEST = 5;
const MOST = 25;

export function actionsOf(seed: number): Action[] {
  const chance = random(hashOf(`actions ${seed}`));
  const length = FEWEST + chance.int(MOST - FEWEST + 1);
  return Array.from({ length }, (_, n) => ({
    kind: n === 0 ? "send" : chance.weighted(WEIGHTS),
    n,
    which: chance.next(),
    how: chance.next(),
    quick: chance.chance(0.3),
  }));
}

export async function perform(world: World, action: Action): Promise<void> {
  try {
    await ACTIONS[action.kind](world, action);
    if (!action.quick) await settle();
  } catch (thrown) {
    // Whoever was asking has lost the host.
    if (world.power.on) throw thrown;
  }
  if (!world.power.on) await revive(world, action);
}

/** Another process takes over, and clients come back by themselves, as the public ones do. */
async function revive(world: World, { which }: Action, how: "crash" | "stop" = "crash"): Promise<void> {
  const here = world.clients.filter((client) => client.connected);
  await world.restart(how);
  if (which < 0.8) for (const client of here) connect(world, client);
}

const ACTIONS: { readonly [K in ActionKind]: (world: World, action: Action) => Promise<void> } = {
  async send(world, { n, which }) {
    const client = await present(world, which);
    const message = newMessage(world, n, `r${n}`);
    client.list.push(message);
    await asks(world, client, world.record.request(`r${n}`, "send"), client.list, "submit-message");
  },

  async save(world, { n }) {
    await world.wake();
    if (!world.power.on) return;
    const before = new Set(world.rows<{ id: string }>("SELECT id FROM perdure_turn").map(({ id }) => id));
    const messageId = `m${n}`;
    void world.agent?.saveMessages([userMessage(messageId, textOf(`u${n}`, 0))]).catch(() => {});
    const [row] = world.rows<{ id: string }>("SELECT id FROM perdure_turn").filter(({ id }) => !before.has(id));
    if (row === undefined) return;
    newMessage(world, n, row.id);
    world.record.request(row.id, "save").accepted = true;
  },

  async submission(world, { n }) {
    const message = userMessage(`m${n}`, textOf(`u${n}`, 0));
    const result = await world.call<SubmitResult>("submitMessages", [message], { idempotencyKey: `k${n}` });
    if (result === undefined) return;
    newMessage(world, n, result.requestId);
    world.record.request(result.requestId, "submission").accepted = true;
    const again = await world.call<SubmitResult>("submitMessages", [message], { idempotencyKey: `k${n}` });
    if (again?.accepted === true) throw new Error(`The submission k${n} was accepted twice.`);
  },

  async continue(world) {
    await world.wake();
    if (world.power.on) void world.agent?.continueLastTurn().catch(() => {});
  },

  async editWaiting(world, { which }) {
    const item = await waiting(world, which);
    const sent = world.record.sent.get(item?.messageIds.at(-1) ?? "");
    if (item === undefined || sent === undefined) return;
    // Merged ones hold more than one text; those are left alone.
    if (item.messages.at(-1)?.parts.length !== 1) return;
    const result = await world.call("editInbox", item.requestId, textOf(sent.tag, sent.version + 1));
    if (result === "edited") sent.version++;
    if (result === "edited") sent.versionSince = world.record.next();
    else if (result === undefined) sent.versionSince = Number.POSITIVE_INFINITY;
  },

  async editOld(world, { n, which, how }) {
    const client = await present(world, how);
    const known = client.list.filter(({ id, role }) => role === "user" && world.record.sent.has(id));
    const old = at(known, which);
    const sent = world.record.sent.get(old?.id ?? "");
    if (old === undefined || sent === undefined || old.parts.length !== 1) return;
    const message = userMessage(old.id, textOf(sent.tag, sent.version + 1));
    client.list = [...client.list.slice(0, client.list.indexOf(old)), message];
    const request = world.record.request(`r${n}`, "edit");
    await asks(world, client, request, client.list, "submit-message");
    // When it holds depends on what runs; only that there is a newer version matters.
    if (request.accepted) sent.version++;
    sent.versionSince = Number.POSITIVE_INFINITY;
  },

  async regenerate(world, { n, which, how }) {
    const client = await present(world, how);
    const answers = client.list.filter(({ role }) => role === "assistant");
    const answer = at(answers, which);
    if (answer === undefined) return;
    client.list = client.list.slice(0, client.list.indexOf(answer));
    await asks(world, client, world.record.request(`r${n}`, "regenerate"), client.list, "regenerate-message");
  },

  async withdraw(world, { which }) {
    const item = await waiting(world, which);
    if (item === undefined) return;
    const result = await world.call<Withdrawal>("withdrawInbox", item.requestId);
    const request = world.record.requests.get(item.requestId);
    if (request === undefined) return;
    if (result === undefined) request.withdrawn = "perhaps";
    else if (result.kind === "withdrawn") request.withdrawn = true;
  },

  async reorder(world, { which, how }) {
    const item = await waiting(world, which);
    const before = how < 0.2 ? undefined : await waiting(world, how);
    if (item === undefined) return;
    await world.call("moveInbox", item.requestId, before?.requestId ?? null);
    world.record.moved = true;
  },

  async stop(world, { which, how }) {
    await world.wake();
    if (!world.power.on) return;
    const open = world.rows<{ id: string }>(OPEN);
    const turn = how < 0.6 ? open[0] : at(open, which);
    if (turn === undefined) return;
    const request = world.record.requests.get(turn.id) ?? world.record.request(turn.id, "continue");
    const client = world.clients.find(({ connected }) => connected);
    if (how < 0.3 && client !== undefined) {
      client.send({ type: "cf_agent_chat_request_cancel", id: turn.id });
      await settle();
      if (world.power.on) await world.wake();
      if (!world.power.on) return void (request.stopped ??= Number.POSITIVE_INFINITY);
      const [row] = world.rows<{ cancelled: number }>("SELECT cancelled FROM perdure_turn WHERE id = ?", turn.id);
      if (row?.cancelled === 1) request.stopped ??= world.record.next();
      return;
    }
    const stopped = await world.call("abortRequest", turn.id);
    if (stopped === undefined) request.stopped ??= Number.POSITIVE_INFINITY;
    else if (stopped === true) request.stopped ??= world.record.next();
  },

  async answer(world, { which, how }) {
    await world.wake();
    if (!world.power.on) return;
    const open = questions(world);
    const question = at(open, which);
    if (question !== undefined) await answer(world, question, how);
  },

  async progress(world, { how }) {
    await world.clock.advance(Math.floor(how * how * 150));
  },

  async wait(world, { how }) {
    await world.clock.advance(Math.floor(200 + how * 1500));
  },

  async idle(world) {
    await world.clock.advance(5_000);
  },

  async leave(world, { which }) {
    at(world.clients, which)?.disconnect();
    await settle();
  },

  async come(world, { which }) {
    const client = at(world.clients, which);
    if (client?.connected === false) connect(world, client);
    await settle();
  },

  async repeat(world, { which }) {
    const client = world.clients.find(({ connected }) => connected);
    const request = at(
      [...world.record.requests.values()].filter(({ kind, accepted }) => kind === "send" && accepted),
      which,
    );
    if (client === undefined || request === undefined) return;
    request.repeated = true;
    const [sent] = [...world.record.sent.values()].filter((one) => one.request === request.id);
    if (sent === undefined) return;
    client.request(request.id, [userMessage(sent.id, textOf(sent.tag, 0))], "submit-message");
    await settle();
  },

  async crash(world, action) {
    await revive(world, action);
  },

  async crashSoon(world, { how }) {
    world.power.commits = 1 + Math.floor(how * 12);
  },

  async stopHost(world, action) {
    await revive(world, action, "stop");
  },
};

const OPEN = `SELECT id FROM perdure_turn WHERE status IN ('held', 'accepted', 'running')
  ORDER BY coalesce(position, seq)`;

/** A call that somebody outside has to answer. */
export interface Question {
  readonly messageId: string;
  readonly part: ToolPart;
}

/** The calls that wait for an answer. The agent must be awake. */
export function questions(world: World): Question[] {
  const running = world.chat.running?.message;
  const list = world.chat.transcripts
    .of(world.chat.session)
    .list()
    .map((message) => (message.id === running?.id ? running : message));
  return list.flatMap((message) =>
    toolParts(message)
      .filter((part) => part.state === "approval-requested" || (isPending(part) && toolName(part) === CLIENT_TOOL))
      .map((part) => ({ messageId: message.id, part })),
  );
}

/** Says something to a question; `how` decides what, and by whom. @returns whether it was taken. */
export async function answer(world: World, { messageId, part }: Question, how: number): Promise<boolean> {
  const { toolCallId } = part;
  if (part.state !== "approval-requested") {
    return (await world.call("answerToolCall", toolCallId, { at: how })) === true;
  }
  const approved = Math.floor(how * 10) % 2 === 0;
  const key = `${messageId}:${toolCallId}`;
  // Before it can have any effect; taken back if it had none.
  const decision = { approved, order: world.record.next() };
  const first = !world.record.decisions.has(key) && toolName(part) !== BUDGET_TOOL;
  if (first) world.record.decisions.set(key, decision);
  const taken = await world.call("answerApproval", toolCallId, approved, { reason: "It was asked." });
  if (taken !== true && first) world.record.decisions.delete(key);
  if (taken === undefined) world.record.unsure.add(key);
  return taken === true;
}

async function asks(
  world: World,
  client: Client,
  request: Request,
  messages: readonly UIMessage[],
  trigger: "submit-message" | "regenerate-message",
): Promise<void> {
  client.request(request.id, messages, trigger);
  await settle();
  if (!world.power.on) return;
  await world.wake();
  if (world.power.on) request.accepted = world.chat.knows(request.id);
}

async function waiting(world: World, which: number): Promise<InboxItem | undefined> {
  return at((await world.call<InboxItem[]>("listInbox")) ?? [], which);
}

/** A client that is connected, or comes, and has read what it missed. */
async function present(world: World, which: number): Promise<Client> {
  const client = at(world.clients, which) ?? world.clients[0];
  if (client.connected) return client;
  connect(world, client);
  await settle();
  return client;
}

function connect(world: World, client: Client): void {
  const { power } = world;
  client.connect(world.cell, () => power.on);
}

function newMessage(world: World, n: number, request: string): UIMessage {
  const tag = `u${n}`;
  const id = `m${n}`;
  world.record.sent.set(id, { id, tag, request, version: 0, versionSince: 0 });
  return userMessage(id, textOf(tag, 0));
}

function userMessage(id: string, text: string): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text }] };
}
