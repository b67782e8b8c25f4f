import { useAgent, useAgentChat } from "perdure/react";
import { Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import type { Orchestrator } from "./orchestrator.ts";

interface Relayed {
  readonly type: "relay";
  readonly name: string;
  readonly chunk: string;
}

function Orchestra() {
  const [open, setOpen] = useState<string>();
  const [said, setSaid] = useState<Readonly<Record<string, string>>>({});
  const agent = useAgent<Orchestrator>({
    agent: "orchestrator",
    name: "main",
    onMessage({ data }) {
      const relayed = readRelay(data);
      if (relayed !== undefined)
        setSaid((all) => ({ ...all, [relayed.name]: addSaid(all[relayed.name], relayed.chunk) }));
    },
  });
  const create = (form: FormData) => void agent.stub.create(textOf(form, "title"));
  const delegate = (name: string, form: FormData) => {
    setSaid((all) => ({ ...all, [name]: "" }));
    void agent.stub.delegate(name, textOf(form, "task"));
  };
  return (
    <>
      <h1>Orchestrator</h1>
      <form action={create}>
        <input name="title" aria-label="Name of a new child" placeholder="Name of a new child" required />
        <button>Create</button>
      </form>
      <ul>
        {agent.state?.children.map(({ name, title, status, tasks }) => (
          <li key={name}>
            <b>{title}</b> {status}, {tasks} tasks <span>{said[name]}</span>
            <form action={(form) => delegate(name, form)}>
              <input name="task" aria-label={`Task for ${title}`} placeholder="Task" required />
              <button>Delegate</button>
            </form>
            <button onClick={() => setOpen(open === name ? undefined : name)}>
              {open === name ? "Close" : "Open"}
            </button>
            {status === "working" ? (
              <button onClick={() => void agent.stub.stop(name)}>Stop</button>
            ) : (
              <button onClick={() => void agent.stub.remove(name)}>Remove</button>
            )}
          </li>
        ))}
      </ul>
      {open !== undefined && (
        <Suspense fallback="Loading …">
          <Child key={open} name={open} />
        </Suspense>
      )}
    </>
  );
}

/** A child's own chat, at its own address below the orchestrator. */
function Child({ name }: { readonly name: string }) {
  const agent = useAgent({ agent: "orchestrator", name: "main", sub: [{ agent: "session", name }] });
  const { messages, sendMessage } = useAgentChat({ agent });
  return (
    <section aria-label="Chat of the child">
      {messages.map(({ id, role, parts }) => (
        <p key={id} className={role}>
          {parts.map((part) => (part.type === "text" ? part.text : ""))}
        </p>
      ))}
      <form action={(form) => void sendMessage({ text: textOf(form, "text") })}>
        <input name="text" aria-label="Message" required />
        <button>Send</button>
      </form>
    </section>
  );
}

function readRelay(data: unknown): Relayed | undefined {
  if (typeof data !== "string" || !data.includes('"relay"')) return undefined;
  const frame = JSON.parse(data) as Relayed;
  return frame.type === "relay" ? frame : undefined;
}

/** What a child has said, with one more chunk. */
function addSaid(before = "", chunk: string): string {
  const { type, delta = "" } = JSON.parse(chunk) as { type: string; delta?: string };
  return type === "text-delta" ? before + delta : before;
}

function textOf(form: FormData, name: string): string {
  const text = form.get(name);
  return typeof text === "string" ? text : "";
}

const root = document.querySelector("main");
if (root) {
  createRoot(root).render(
    <Suspense fallback="Loading …">
      <Orchestra />
    </Suspense>,
  );
}
