import { useAgent, useAgentChat } from "perdure/react";
import { Suspense } from "react";
import { createRoot } from "react-dom/client";

function Chat({ route }: { readonly route: string }) {
  const agent = useAgent({ agent: route, name: "main" });
  const { messages, sendMessage, error } = useAgentChat({ agent });
  const send = (form: FormData) => {
    const text = form.get("text");
    if (typeof text === "string") void sendMessage({ text });
  };
  return (
    <section aria-label={route}>
      <h2>{route}</h2>
      {messages.map(({ id, role, parts }) => (
        <p key={id} className={role}>
          {parts.map((part) => (part.type === "text" ? part.text : ""))}
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={send}>
        <input name="text" aria-label={`Message to ${route}`} required />
        <button>Send</button>
      </form>
    </section>
  );
}

const root = document.querySelector("main");
if (root) {
  createRoot(root).render(
    <Suspense fallback="Loading …">
      <Chat route="support" />
      <Chat route="poet" />
    </Suspense>,
  );
}
