import { eq, inArray } from "@tanstack/db";
import { useLiveQuery } from "@tanstack/react-db";
import type { AgentMessage, GenerationRecord } from "perdure/collections";
import { useState } from "react";
import { isAgent, me, session } from "./here.ts";
import { agentNames } from "./session.ts";

const { messages, generations, chunks, people } = session;

/** The conversation, and behind it the answers that are being written. */
export function Room() {
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
        {said.length === 0 && <li className="doing">Ask the planner for a story, here or in another window.</li>}
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

/** Writes to an agent, and shows the others that somebody does. */
export function Composer() {
  const [typing, setTyping] = useState(false);
  const type = (now: boolean) => {
    if (now === typing) return;
    setTyping(now);
    if (people.has(me)) people.update(me, (draft) => void (draft.typing = now));
    else people.insert({ id: me, typing: now });
  };
  const send = (form: FormData) => {
    type(false);
    messages.insert({ actorId: me, targetAgent: textOf(form, "to"), content: textOf(form, "text") });
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

function textOf(form: FormData, name: string): string {
  const text = form.get(name);
  return typeof text === "string" ? text : "";
}
