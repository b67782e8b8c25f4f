import "./compact-dialog.css";
import type { UseAgentChat } from "perdure/react";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Dialog } from "../control/dialog.tsx";
import { inNumbers, inTokens } from "./tokens.ts";

interface Draft {
  readonly summary: string;
  readonly messageId: string;
  readonly parts: number | null;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly problem?: string | null | undefined;
}

/** Where it stands: what to keep is asked, a summary is written, it is looked at, it is applied. */
type Step = "asks" | "writes" | "shows" | "applies";

/** Has what was said so far summarised for the model. The text is shown first, and can be changed. */
export function CompactDialog({ chat, onClose }: { readonly chat: UseAgentChat; readonly onClose: () => void }) {
  const [step, setStep] = useState<Step>("asks");
  const [focus, setFocus] = useState("");
  const [draft, setDraft] = useState<Draft>();
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string>();
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => void (isOpen.current = false);
  }, []);

  const attempt = async (from: Step, during: Step, work: () => Promise<void>) => {
    setProblem(undefined);
    setStep(during);
    try {
      await work();
    } catch (error) {
      if (!isOpen.current) return;
      setProblem(error instanceof Error ? error.message : String(error));
      setStep(from);
    }
  };
  const write = () =>
    attempt("asks", "writes", async () => {
      const words = focus.trim();
      const made = await chat.compact({ preview: true, ...(words !== "" && { focus: words }) });
      if (!isOpen.current) return;
      setDraft(made);
      setText(made.summary);
      setStep("shows");
    });
  const apply = () =>
    attempt("shows", "applies", async () => {
      if (draft === undefined) return;
      const { messageId, parts } = draft;
      await chat.applyCompaction({ summary: text.trim(), messageId, ...(parts !== null && { parts }) });
      if (isOpen.current) onClose();
    });
  const isFirst = step === "asks" || step === "writes";
  return (
    <Dialog
      title="Summarise for the model"
      text="The model reads a summary instead of the older messages. They stay here as they are, and it can be undone."
      className="compact-dialog"
      testId="compact-dialog"
      onClose={onClose}
    >
      {isFirst ? (
        <Field
          label="What must it keep? (You can leave this empty.)"
          value={focus}
          rows={2}
          testId="compact-focus"
          disabled={step === "writes"}
          onChange={setFocus}
        />
      ) : (
        <Field
          label="The summary. Change it if you like."
          value={text}
          rows={12}
          testId="compact-text"
          disabled={step === "applies"}
          onChange={setText}
        />
      )}
      {draft !== undefined && !isFirst && (
        <p className="compact-size" data-testid="compact-size">
          {inTokens(draft.tokensBefore)} become about {inNumbers(draft.tokensAfter)}.
        </p>
      )}
      {(problem ?? (isFirst ? undefined : draft?.problem)) && (
        <p className="dialog-problem" role="alert" data-testid="compact-problem">
          {problem ?? draft?.problem}
        </p>
      )}
      <div className="dialog-actions">
        <p role="status">{step === "writes" ? "The model writes it…" : ""}</p>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        {isFirst ? (
          <button
            type="button"
            className="button button-primary"
            disabled={step === "writes"}
            onClick={() => void write()}
            data-testid="compact-write"
          >
            Write it
          </button>
        ) : (
          <button
            type="button"
            className="button button-primary"
            disabled={step === "applies" || text.trim() === ""}
            onClick={() => void apply()}
            data-testid="compact-apply"
          >
            Use it
          </button>
        )}
      </div>
    </Dialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly testId: string;
  readonly disabled: boolean;
  readonly onChange: (value: string) => void;
}

function Field({ label, value, rows, testId, disabled, onChange }: FieldProps): ReactNode {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        ref={area}
        id={id}
        rows={rows}
        value={value}
        readOnly={disabled}
        data-testid={testId}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
