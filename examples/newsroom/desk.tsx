import { eq, inArray, isUndefined, not } from "@tanstack/db";
import { useLiveQuery } from "@tanstack/react-db";
import { createApprovals, reviveMessage } from "perdure/collections";
import { me, session } from "./here.ts";
import { agentNames } from "./session.ts";

const { messages, generations, toolCalls, people } = session;
const decisions = createApprovals({ events: session.approvals });

/** Who is here, and what each of them does. */
export function Team() {
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

/** Tools that a person must allow. The tool runs in another process; what is written here releases it. */
export function Approvals() {
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

export function Tools() {
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
export function DeadLetters() {
  const { data: dead } = useLiveQuery((q) => q.from({ m: messages }).where(({ m }) => not(isUndefined(m.error))));
  if (dead.length === 0) return null;
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
            <button onClick={() => void reviveMessage(messages, id)}>Try again</button>
          </div>
        </div>
      ))}
    </section>
  );
}

function Given({ args }: { readonly args: unknown }) {
  return <code>{Object.values(args ?? {}).join(" / ")}</code>;
}
