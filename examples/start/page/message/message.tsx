import "./message.css";
import { memo, type ReactNode, use, useState } from "react";
import { Attachment } from "./attachment.tsx";
import { EditForm } from "./edit-form.tsx";
import { Markdown } from "./markdown.tsx";
import { MessageActions } from "./message-actions.tsx";
import { MessagePart } from "./message-part.tsx";
import { type ChatMessage, filesOf, groupsOf, isOfAgent, textOf } from "./parts.ts";
import { MarksContext } from "./marks.ts";
import { Speaker } from "./speaker.ts";
import { ToolCall } from "../run/run-calls.tsx";

/** What a message can ask of its chat. The same functions for all messages, so that only changed ones are drawn. */
export interface MessageHandlers {
  readonly answer: (approvalId: string, approved: boolean) => void;
  readonly regenerate: () => void;
  readonly edit: (message: ChatMessage, text: string) => void;
}

interface Props {
  readonly message: ChatMessage;
  /** It may still change by itself. */
  readonly live: boolean;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  /** It was looked for. */
  readonly isFound: boolean;
  /** Something is under way: nothing can be asked anew. */
  readonly busy: boolean;
  readonly handlers: MessageHandlers;
}

/** One message and what belongs to it. */
export const Message = memo(function Message(props: Props): ReactNode {
  const { message, live, isFirst, isLast, isFound, busy, handlers } = props;
  const [editing, setEditing] = useState(false);
  const speaker = use(Speaker);
  const { pins } = use(MarksContext);
  const { id, role } = message;
  const isUser = role === "user";
  const isAgent = isOfAgent(message);
  const text = textOf(message);
  return (
    <article
      className="message"
      data-testid="message"
      data-role={role}
      data-id={id}
      data-live={live || undefined}
      data-agent={isAgent || undefined}
      data-first={isFirst || undefined}
      data-last={isLast || undefined}
      data-found={isFound || undefined}
      data-pinned={pins.has(id) || undefined}
      tabIndex={isFound ? -1 : undefined}
    >
      <h2 className={isAgent ? "message-from" : "visually-hidden"}>
        {isAgent ? (isFirst ? "The task" : "From a helper") : isUser ? "You said" : `${speaker} said`}
      </h2>
      {isUser ? (
        <UserContent
          message={message}
          editing={editing}
          onSave={(changed) => {
            setEditing(false);
            handlers.edit(message, changed);
          }}
          onCancel={() => setEditing(false)}
        />
      ) : (
        <div className="message-parts">
          {groupsOf(message.parts).map(({ first, calls, part }) =>
            part === undefined ? (
              <div key={first} className="calls">
                {calls.map((call) => (
                  <ToolCall key={call.toolCallId} part={call} live={live} onAnswer={handlers.answer} />
                ))}
              </div>
            ) : (
              <MessagePart key={first} part={part} live={live} isEnd={first === message.parts.length - 1} />
            ),
          )}
        </div>
      )}
      {!live && !editing && (
        <MessageActions
          id={id}
          text={text}
          onEdit={isUser && !isAgent && !busy ? () => setEditing(true) : undefined}
          onRegenerate={!isUser && isLast && !busy ? handlers.regenerate : undefined}
        />
      )}
    </article>
  );
});

interface UserProps {
  readonly message: ChatMessage;
  readonly editing: boolean;
  readonly onSave: (text: string) => void;
  readonly onCancel: () => void;
}

function UserContent({ message, editing, onSave, onCancel }: UserProps): ReactNode {
  const files = filesOf(message);
  const text = textOf(message);
  const isAgent = isOfAgent(message);
  return (
    <div className="said">
      {files.length > 0 && (
        <div className="attachments">
          {files.map((file, index) => (
            <Attachment key={index} part={file} />
          ))}
        </div>
      )}
      {editing ? (
        <EditForm text={text} onSave={onSave} onCancel={onCancel} />
      ) : (
        text !== "" && <Words {...{ text, isAgent }} />
      )}
    </div>
  );
}

/** What a user typed is shown as it is; what an agent wrote was meant to be formatted. */
function Words({ text, isAgent }: { readonly text: string; readonly isAgent: boolean }): ReactNode {
  return isAgent ? <Markdown text={text} live={false} /> : <p>{text}</p>;
}
