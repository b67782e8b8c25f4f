import { eq, inArray, isUndefined, not } from "@tanstack/db";
import { useLiveQuery } from "@tanstack/react-db";
import { createApprovals } from "perdure/collections";
import type { AgentMessage, GenerationRecord } from "perdure/collections";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { openLog } from "./log.ts";
import { agentNames, openSession } from "./session.ts";

// All that the page has: collections. What others write shows up in them, whoever and wherever they are.
const { messages, generations, chunks, toolCalls, approvals, people } = openSession(openLog(sessionUrl()));
const decisions = createApprovals({ events: approvals });

/** Who sits at this page; another name in each tab. */
const me =
  (sessionStorage.name ??= `${pick(["Ada", "Grace", "Katherine", "Hedy"])}-${Math.ceil(Math.random() * 99)}`) as string;

function Newsroom() {
  return (
    <>
      <header>
        <h1>Newsroom</h1>
        <Team />
      </header>
      <main>
        <Room />
        <Approvals />
        <Composer />
      </main>
      <aside aria-label="Desk" tabIndex={0}>
        <DeadLetters />
        <Tools />
      </aside>
    </>
  );
}

/** The conversation, and behind it the answers that are being written. */
function Room() {
  const { data: said } = useLiveQuery((q) =>
    q
      .from({ m: messages })
      .where(({ m }) => inArray(m.role, ["user", "assistant"]))
      .orderBy(({ m }) => m.seq, { direction: "asc", nulls: "last" }),
  );
  const { data: live } = useLiveQuery((q) =>
    q.from({ g: generations }).where(({ g }) => inArray(g.status, ["generating", "suspended"])),
  );
  return (
    <div className="room" role="region" aria-label="Conversation" tabIndex={0}>
      <ol aria-label="Messages" aria-live="polite">
        {said.map((message, at) => (
          <Said key={message.id} message={message} before={said[at - 1]} />
        ))}
        {live.map((generation) => (
          <Live key={generation.id} generation={generation} />
        ))}
      </ol>
    </div>
  );
}

function Said({ message, before }: { readonly message: AgentMessage; readonly before: AgentMessage | undefined }) {
  const { actorId, targetAgent, content } = message;
  if (content === "") return null;
  const goesOn = before?.actorId === actorId && before.targetAgent === targetAgent;
  return (
    <li className={isAgent(actorId) && isAgent(targetAgent) ? "between" : ""}>
      {!goesOn && <Who name={actorId} to={targetAgent} />}
      <p>{content}</p>
    </li>
  );
}

/** An answer as far as it is written: its chunks in order. */
function Live({ generation }: { readonly generation: GenerationRecord }) {
  const { data: text } = useLiveQuery((q) =>
    q
      .from({ c: chunks })
      .where(({ c }) => eq(c.generationId, generation.id))
      .where(({ c }) => eq(c.type, "text"))
      .orderBy(({ c }) => c.index),
  );
  if (text.length === 0) return null;
  return (
    <li className="live">
      <Who name={generation.agentName} />
      <p>{text.map(({ content }) => content).join("")}</p>
    </li>
  );
}

function Who({ name, to }: { readonly name: string; readonly to?: string }) {
  return (
    <div className="who">
      <b data-agent={isAgent(name) || undefined}>{name === me ? "you" : name}</b>
      {to !== undefined && <span>to {to === me ? "you" : to}</span>}
    </div>
  );
}

/** Who is here, and what each of them does. */
function Team() {
  const { data: working } = useLiveQuery((q) =>
    q.from({ g: generations }).where(({ g }) => inArray(g.status, ["generating", "suspended"])),
  );
  const { data: typing } = useLiveQuery((q) => q.from({ p: people }).where(({ p }) => eq(p.typing, true)));
  return (
    <ul className="team" aria-label="Who is here" aria-live="polite">
      {agentNames.map((name) => (
        <li key={name}>
          {name}{" "}
          <span className="doing">{working.some((one) => one.agentName === name) ? "is at work …" : "rests"}</span>
        </li>
      ))}
      {typing.map(({ id }) => (
        <li key={id}>
          {id === me ? "you" : id} <span className="doing">typing …</span>
        </li>
      ))}
    </ul>
  );
}

function Composer() {
  const [typing, setTyping] = useState(false);
  const type = (now: boolean) => {
    if (now === typing) return;
    setTyping(now);
    if (people.has(me)) people.update(me, (draft) => void (draft.typing = now));
    else people.insert({ id: me, typing: now });
  };
  const send = (form: FormData) => {
    type(false);
    messages.insert({
      id: crypto.randomUUID(),
      role: "user",
      actorId: me,
      targetAgent: textOf(form, "to"),
      content: textOf(form, "text"),
      createdAt: new Date().toISOString(),
      processed: false,
    });
  };
  return (
    <form action={send}>
      <select name="to" aria-label="To">
        {agentNames.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input
        name="text"
        aria-label="Message"
        placeholder="A story about tides"
        autoComplete="off"
        required
        onInput={({ currentTarget }) => type(currentTarget.value !== "")}
        onBlur={() => type(false)}
      />
      <button className="go">Send</button>
    </form>
  );
}

/** Tools that a person must allow. The tool runs in another process; what is written here releases it. */
function Approvals() {
  const { data: waiting } = useLiveQuery((q) =>
    q
      .from({ t: toolCalls })
      .where(({ t }) => eq(t.status, "pending"))
      .where(({ t }) => eq(t.needsApproval, true)),
  );
  return waiting.map((call) => (
    <section key={call.id} className="card approval" aria-label={`May ${call.name} run?`}>
      May <b>{call.name}</b> run? <Given args={call.args} />
      <div className="buttons">
        <button className="go" onClick={() => void decisions.approve(call.id, { actorId: me })}>
          Approve
        </button>
        <button onClick={() => void decisions.deny(call.id, { actorId: me })}>Deny</button>
      </div>
    </section>
  ));
}

function Tools() {
  const { data: calls } = useLiveQuery((q) => q.from({ t: toolCalls }).orderBy(({ t }) => t.createdAt, "desc"));
  return (
    <section>
      <h2>Tools</h2>
      {calls.length === 0 && <p className="doing">Nobody has used one yet.</p>}
      {calls.map(({ id, name, args, status, error }) => (
        <div key={id} className="card">
          <b>{name}</b> <small>{error ?? status}</small>
          <Given args={args} />
        </div>
      ))}
    </section>
  );
}

/** Messages that an agent has given up, and a way to give them back. */
function DeadLetters() {
  const { data: dead } = useLiveQuery((q) => q.from({ m: messages }).where(({ m }) => not(isUndefined(m.error))));
  if (dead.length === 0) return null;
  const again = (id: string) =>
    messages.update(id, (draft) => {
      draft.processed = false;
      draft.attempts = 0;
      delete draft.error;
    });
  return (
    <section>
      <h2>Dead letters</h2>
      {dead.map(({ id, targetAgent, content, error }) => (
        <div key={id} className="card">
          “{content}”{" "}
          <small>
            to {targetAgent}: {error}
          </small>
          <div className="buttons">
            <button onClick={() => again(id)}>Try again</button>
          </div>
        </div>
      ))}
    </section>
  );
}

function Given({ args }: { readonly args: unknown }) {
  return <code>{Object.values(args ?? {}).join(" / ")}</code>;
}

function sessionUrl(): string {
  return new URLSearchParams(location.search).get("session") ?? `${location.origin}/agents/newsroom/today`;
}

function isAgent(name: string): boolean {
  return (agentNames as readonly string[]).includes(name);
}

function textOf(form: FormData, name: string): string {
  const text = form.get(name);
  return typeof text === "string" ? text : "";
}

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T;
}

const root = document.querySelector("#page");
if (root) createRoot(root).render(<Newsroom />);
