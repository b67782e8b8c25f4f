import { getToolName, isToolUIPart } from "ai";
import { type OnToolCall, useAgent, useAgentChat } from "perdure/react";
import { Suspense } from "react";
import { createRoot } from "react-dom/client";
import type { ToolMessage } from "./tools.ts";

type Part = ToolMessage["parts"][number];
type Decide = (id: string, approved: boolean) => void;

/** Runs the tools that have no code on the server. */
const onToolCall: OnToolCall = ({ toolCall, addToolOutput }) => {
  if (toolCall.toolName !== "localTime") return;
  addToolOutput({ toolCallId: toolCall.toolCallId, output: new Date().toLocaleString() });
};

function Chat() {
  const agent = useAgent({ agent: "tool-agent", name: "main" });
  const chat = useAgentChat<unknown, ToolMessage>({ agent, onToolCall });
  const decide: Decide = (id, approved) => chat.addToolApprovalResponse({ id, approved });
  const send = (form: FormData) => {
    const text = form.get("text");
    if (typeof text === "string") void chat.sendMessage({ text });
  };
  return (
    <>
      {chat.messages.map(({ id, role, parts }) => (
        <div key={id} className={role}>
          {parts.map((part, index) => (
            <PartView key={index} part={part} decide={decide} />
          ))}
        </div>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <form action={send}>
        <input name="text" aria-label="Message" placeholder="Delete notes.txt" required autoFocus />
        <button>Send</button>
        {chat.isStreaming && (
          <button type="button" onClick={chat.stop}>
            Stop
          </button>
        )}
      </form>
    </>
  );
}

function PartView({ part, decide }: { part: Part; decide: Decide }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const { approval } = part;
  return (
    <section aria-label={`Tool ${getToolName(part)}`}>
      <code>
        {getToolName(part)}({JSON.stringify(part.input)})
      </code>{" "}
      {part.state === "output-available" && <output>{JSON.stringify(part.output)}</output>}
      {part.state === "output-error" && <output>{part.errorText}</output>}
      {part.state === "output-denied" && <output>denied</output>}
      {part.state === "approval-requested" && approval && (
        <>
          <button onClick={() => decide(approval.id, true)}>Approve</button>
          <button onClick={() => decide(approval.id, false)}>Deny</button>
        </>
      )}
    </section>
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
