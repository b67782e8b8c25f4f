// What can happen to sessions and branches, one thing at a time. An action that does not apply does nothing.
import type { UIMessage } from "ai";
import { settle } from "../think/interleave-world.ts";
import type { Answer, Client, Place } from "./branches-client.ts";
import { Facts } from "./branches-facts.ts";
import { type Key, MAIN } from "./branches-oracle.ts";
import { committed, keyOfId, openTurns, pick, present, questions, type Run } from "./branches-state.ts";

const WEIGHTS = {
  send: 14,
  regenerate: 6,
  edit: 5,
  stop: 1.5,
  approve: 5,
  fork: 4,
  create: 1,
  branch: 7,
  view: 2,
  closeView: 1,
  attach: 5,
  switchSession: 2,
  clear: 1,
  remove: 1.5,
  progress: 10,
  wait: 3,
  idle: 1,
  leave: 1,
  come: 2,
  crash: 1,
  crashSoon: 1.5,
  stopHost: 0.5,
  undo: 1,
  quiet: 2,
};

export type ActionKind = keyof typeof WEIGHTS;

export interface Action {
  readonly kind: ActionKind;
  /** Names what it makes. Stays when other actions are left out. */
  readonly n: number;
  readonly which: number;
  readonly how: number;
  readonly where: number;
  /** Whether the next one comes at once. */
  readonly quick: boolean;
}

export const kinds = Object.entries(WEIGHTS) as [ActionKind, number][];

/** Does it. What cannot be foreseen at this moment makes the session fuzzy. */
export async function perform(run: Run, action: Action): Promise<void> {
  const { world } = run;
  await world.wake();
  if (world.power.on) run.resolve();
  if (world.power.on) await ACTIONS[action.kind](run, action);
  if (!action.quick) await settle();
}

type Act = (run: Run, action: Action) => Promise<void>;

const ACTIONS: { readonly [K in ActionKind]: Act } = {
  async send(run, { n, where }) {
    const client = await present(run, where);
    const session = run.oracle.of(run.sessionOf(client));
    const message = text(`m${n}`, `u${n}v0`);
    const steers = run.world.setup.policy === "steer" && session.pending.length > 0;
    await ask(run, client, `r${n}`, [...client.list, message], "submit-message", () => {
      if (steers) session.fuzzy = true;
      run.versions.set(`m${n}`, 0);
      run.oracle.sent(session.id, `r${n}`, `u${n}v0`);
    });
  },

  async regenerate(run, { n, which, where }) {
    const client = await present(run, where);
    const session = run.oracle.of(run.sessionOf(client));
    const answer = pick(
      client.list.filter(({ role }) => role === "assistant"),
      which,
    );
    const key = keyOfId(run, answer?.id);
    if (answer === undefined || key === undefined || !run.oracle.shown(session.id).includes(key)) return;
    const list = client.list.slice(0, client.list.indexOf(answer));
    const busy = session.pending.length > 0;
    // A question that a limit has taken away since is another matter.
    if (!new Facts(run.world).path(session.id).some(({ id }) => id === list.at(-1)?.id)) return;
    await ask(run, client, `r${n}`, list, "regenerate-message", () => {
      if (busy) session.fuzzy = true;
      else session.leaf = run.oracle.nodes.get(key)?.parent ?? null;
      session.pending.push({ turn: `r${n}` });
    });
  },

  async edit(run, { n, which, where }) {
    const client = await present(run, where);
    const session = run.oracle.of(run.sessionOf(client));
    const old = pick(
      client.list.filter(({ id, role }) => role === "user" && run.versions.has(id)),
      which,
    );
    const key = keyOfId(run, old?.id);
    if (old === undefined || key === undefined || !run.oracle.shown(session.id).includes(key)) return;
    const version = (run.versions.get(old.id) ?? 0) + 1;
    const next = `u${old.id.slice(1)}v${version}`;
    const busy = session.pending.length > 0;
    const list = [...client.list.slice(0, client.list.indexOf(old)), text(old.id, next)];
    // Nobody may see two messages of one version, also if this one is lost.
    run.versions.set(old.id, version);
    await ask(run, client, `r${n}`, list, "submit-message", () => {
      if (busy) session.fuzzy = true;
      session.leaf = run.oracle.nodes.get(key)?.parent ?? null;
      run.oracle.add(session, next);
      session.pending.push({ turn: `r${n}` });
    });
  },

  async stop({ world }, { which }) {
    const turn = pick(openTurns(world), which);
    if (turn !== undefined) await world.call("abortRequest", turn.id);
  },

  async approve(run, { which, how, where }) {
    const { world } = run;
    const open = questions(run);
    const question = pick(open, which);
    if (question === undefined) return;
    const client = pick(world.clients, where);
    const { session, toolCallId } = question;
    if (client?.connected === true && run.sessionOf(client) === session)
      client.send({ type: "cf_agent_tool_approval", toolCallId, approved: how < 0.7, autoContinue: true });
    else await world.call("answerApproval", toolCallId, how < 0.7, { session });
  },

  async fork(run, { n, which, how, where }) {
    const { world, oracle } = run;
    const source = pick([...oracle.sessions.values()], where);
    if (source === undefined) return;
    const shown = oracle.shown(source.id);
    const settled = source.pending.length > 0 || source.fuzzy ? shown.slice(0, -1) : shown;
    const key = how < 0.5 ? pick(settled, which) : undefined;
    const at = key === undefined ? undefined : new Facts(world).byKey.get(key)?.id;
    if (key !== undefined && at === undefined) return;
    const id = `s${n}`;
    const busy = openTurns(world).length > 0;
    await world.call("forkSession", source.id, { id, ...(at !== undefined && { at }) });
    await committed(run, () => {
      if (!new Facts(world).sessions.has(id)) return;
      const fuzzy = source.fuzzy || (key === undefined && busy);
      oracle.sessions.set(id, { id, viewOf: undefined, leaf: key ?? source.leaf, pending: [], fuzzy });
    });
  },

  async create(run, { n }) {
    const { world, oracle } = run;
    const id = `s${n}`;
    await world.call("createSession", { id });
    await committed(run, () => {
      if (new Facts(world).sessions.has(id))
        oracle.sessions.set(id, { id, viewOf: undefined, leaf: null, pending: [], fuzzy: false });
    });
  },

  async branch(run, { n, which, how, where }) {
    const { world, oracle } = run;
    const client = await present(run, where);
    if (!world.power.on || !client.connected) return;
    const here = oracle.of(run.sessionOf(client));
    const owner = oracle.ownerOf(here.id);
    const facts = new Facts(world);
    const target = pick(
      facts.nodes.filter((node) => node.session === owner && oracle.nodes.has(node.key)),
      which,
    );
    if (target === undefined) return;
    const own = how < 0.7;
    const busy = openTurns(world).length > 0;
    const before = new Set(facts.sessions.keys());
    const answer = await question(run, client, n, { op: "switchBranch", messageId: target.id, own, named: how < 0.2 });
    await committed(run, () => {
      run.untouched.clear();
      if (answer?.error !== undefined)
        return expectRefusal(run, "switchBranch", answer, ["bad_state", "not_found", "call_failed"]);
      const after = new Facts(world);
      const place = answer?.value as Place | undefined;
      const fresh = [...after.sessions.values()].find(({ id }) => !before.has(id) && id !== MAIN);
      const changed = fresh?.id ?? (own ? place?.session : owner);
      const leaf = facts.bySeq.get(facts.newestUnder(target.seq, owner))?.key ?? null;
      const unsure = busy || [...oracle.sessions.values()].some((one) => one.fuzzy);
      if (fresh !== undefined)
        oracle.sessions.set(fresh.id, { id: fresh.id, viewOf: owner, leaf, pending: [], fuzzy: unsure });
      else if (changed === undefined)
        for (const one of [here, oracle.of(owner)]) one.fuzzy ||= one.pending.length === 0;
      else {
        const session = oracle.of(changed);
        if (oracle.shown(session.id).includes(target.key)) return;
        session.leaf = leaf;
        session.fuzzy ||= unsure;
      }
    });
  },

  async view(run, { where, which }) {
    const { world, oracle } = run;
    const source = pick([...oracle.sessions.values()], where);
    if (source === undefined) return;
    const fuzzy = source.fuzzy || openTurns(world).length > 0;
    const before = new Set(new Facts(world).sessions.keys());
    await world.call("openView", source.id);
    await committed(run, () => {
      const fresh = [...new Facts(world).sessions.values()].find(
        ({ id, viewOf }) => !before.has(id) && viewOf !== null,
      );
      if (fresh === undefined) return;
      const viewOf = source.viewOf ?? source.id;
      oracle.sessions.set(fresh.id, { id: fresh.id, viewOf, leaf: source.leaf, pending: [], fuzzy });
    });
    const client = pick(world.clients, which);
    if (client?.connected === true && world.power.on) await attach(run, client, [...oracle.sessions.keys()].at(-1), 0);
  },

  async closeView(run, { which }) {
    const { world, oracle } = run;
    const view = pick(
      [...oracle.sessions.values()].filter(({ viewOf }) => viewOf !== undefined),
      which,
    );
    if (view === undefined) return;
    await world.call("closeView", view.id);
    await committed(run, () => {
      if (new Facts(world).sessions.has(view.id)) return;
      // What waits there ends with it.
      oracle.resolve(view, run.isAnswered, () => false);
      oracle.sessions.delete(view.id);
    });
  },

  async attach(run, { n, which, where }) {
    const client = await present(run, where);
    if (client.connected) await attach(run, client, pick([undefined, ...run.oracle.sessions.keys()], which), n);
  },

  async switchSession(run, { which }) {
    const { world, oracle } = run;
    const session = pick(
      [...oracle.sessions.values()].filter(({ viewOf }) => viewOf === undefined),
      which,
    );
    if (session === undefined) return;
    run.moving = true;
    await world.call("switchSession", session.id);
    await committed(run, () => void (oracle.current = new Facts(world).current));
    run.moving = false;
  },

  async clear(run, { which, where }) {
    const { world, oracle } = run;
    const client = pick(world.clients, where);
    const session = pick([...oracle.sessions.values()], which);
    if (session === undefined) return;
    const target = client?.connected === true ? run.sessionOf(client) : session.id;
    const owner = oracle.ownerOf(target);
    // Another one may come from the store when the power goes off.
    if (client?.connected === true) {
      client.list = [];
      client.send({ type: "cf_agent_chat_clear" });
      await settle();
    } else await world.call("clearSession", target);
    await committed(run, () => {
      if ((new Facts(world).sessions.get(owner)?.leaf ?? null) === null) forget(run, owner);
    });
  },

  async remove(run, { which, how, where, n }) {
    const { world, oracle } = run;
    const session = pick(
      [...oracle.sessions.values()].filter(({ viewOf }) => viewOf === undefined),
      which,
    );
    if (session === undefined) return;
    const client = pick(world.clients, where);
    run.moving = true;
    if (how < 0.5 && client?.connected === true) {
      const answer = await question(run, client, n, { op: "delete", session: session.id });
      // Who deletes the session that it is in goes to the current one.
      if (answer?.error === undefined && client.named === session.id) client.named = undefined;
    } else await world.call("deleteSession", session.id);
    await committed(run, () => {
      const facts = new Facts(world);
      if (facts.sessions.has(session.id)) return;
      forget(run, session.id);
      oracle.remove(session.id);
      oracle.current = facts.current;
      for (const one of world.clients)
        if (one.named !== undefined && !oracle.sessions.has(one.named)) one.named = undefined;
    });
    run.moving = false;
  },

  async progress({ world }, { how }) {
    await world.clock.advance(Math.floor(how * how * 150));
  },

  async wait({ world }, { how }) {
    await world.clock.advance(Math.floor(200 + how * 1500));
  },

  async idle({ world }) {
    await world.clock.advance(5_000);
  },

  async leave({ world }, { where }) {
    pick(world.clients, where)?.disconnect();
    await settle();
  },

  async come(run, { where }) {
    await present(run, where);
  },

  async crash({ world }) {
    await world.restart();
  },

  async crashSoon({ world }, { how }) {
    world.power.commits = 1 + Math.floor(how * 12);
  },

  async stopHost({ world }) {
    await world.restart("stop");
  },

  async undo(run, { how }) {
    run.unsteady = true;
    for (const session of run.oracle.sessions.values()) session.fuzzy = true;
    run.world.power.undone = 1 + Math.floor(how * 8);
  },

  // Done by the run.
  async quiet() {},
};

function forget(run: Run, owner: string): void {
  // Whose a message is that a limit let go of, the oracle does not know.
  run.oracle.unsure ||= run.world.setup.maxMessages !== undefined;
  run.untouched.clear();
  run.oracle.forget(owner);
}

async function attach(run: Run, client: Client, session: string | undefined, n: number): Promise<void> {
  const answer = await question(run, client, n, { op: "attach", session: session ?? null });
  if (run.world.power.on && answer?.error !== undefined) expectRefusal(run, "attach", answer, []);
}

/** Sends a request and, if it was stored, notes it. */
async function ask(
  run: Run,
  client: Client,
  id: string,
  messages: readonly UIMessage[],
  trigger: "submit-message" | "regenerate-message",
  accepted: () => void,
): Promise<void> {
  if (!client.connected) return;
  run.turns.set(id, run.sessionOf(client));
  run.offers.set(id, accepted);
  const before = client.list;
  client.request(id, messages, trigger);
  await settle();
  await committed(run, () => {
    if (run.world.chat.knows(id)) run.accept(id);
    // It was refused: what was shown before is shown again.
    else client.list = before;
    run.offers.delete(id);
  });
}

/** Asks what is answered to this client alone. @returns undefined when the power went off over it. */
async function question(run: Run, client: Client, n: number, ask: object): Promise<Answer | undefined> {
  const id = `q${n}`;
  client.moving = true;
  client.send({ type: "perdure_session", id, ...ask });
  await settle();
  client.moving = false;
  const answer = client.answers.get(id);
  client.answers.delete(id);
  if (answer === undefined && run.world.power.on && client.connected && !run.unsteady)
    run.wrong.push(`${client.name} was not answered: ${JSON.stringify(ask)}`);
  return answer;
}

function expectRefusal(run: Run, what: string, { error }: Answer, codes: readonly string[]): void {
  if (run.unsteady || codes.includes(error?.code ?? "")) return;
  run.wrong.push(`${what} was refused: ${error?.code} ${error?.message}`);
}

function text(id: string, key: Key): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text: `[${key}] please` }] };
}
