import { useAgent, useAgentChat } from "perdure/react";
import { Suspense } from "react";
import { createRoot } from "react-dom/client";

function Chat() {
  const agent = useAgent({ agent: "chat-agent", name: "main" });
  const { messages, sendMessage, status, stop, error } = useAgentChat({ agent });
  const send = (form: FormData) => {
    const text = form.get("text");
    if (typeof text === "string") void sendMessage({ text });
  };
  return (
    <>
      {messages.map(({ id, role, parts }) => (
        <p key={id} className={role}>
          {parts.map((part) => (part.type === "text" ? part.text : ""))}
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={send}>
        <input name="text" aria-label="Message" required autoFocus />
        {status === "ready" || status === "error" ? (
          <button>Send</button>
        ) : (
          <button type="button" onClick={stop}>
            Stop
          </button>
        )}
      </form>
    </>
  );
}

const root = document.querySelector("main");
if (root) {
  createRoot(root).render(
    <Suspense fallback="Loading …">
      <Chat />
    </Suspense>,
  );
}
