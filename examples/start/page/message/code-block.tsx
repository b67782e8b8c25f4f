import type { ReactNode } from "react";
import type { ExtraProps } from "react-markdown";
import { IconButton } from "../control/icon-button.tsx";
import { useCopy } from "../control/use-copy.ts";

interface Code {
  readonly language: string;
  readonly text: string;
}

/** Code with its language and a button that copies it. */
export function CodeBlock({ language, text }: Code): ReactNode {
  const { copied, copy } = useCopy();
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language === "" ? "text" : language}</span>
        <IconButton
          icon={copied ? "check" : "copy"}
          label={copied ? "Copied" : "Copy code"}
          onClick={() => copy(text)}
          data-testid="copy-code"
        />
      </figcaption>
      <pre tabIndex={0} aria-label={language === "" ? "Code" : `Code, ${language}`} role="region">
        <code>{text}</code>
      </pre>
    </figure>
  );
}

/** What the tree of markdown has for a block of code. */
export function codeOf(pre: ExtraProps["node"]): Code {
  const code = pre?.children.find((child) => child.type === "element");
  const classes = code?.properties.className;
  const named = Array.isArray(classes) ? classes.map(String).find((name) => name.startsWith("language-")) : undefined;
  const text = code?.children.map((child) => (child.type === "text" ? child.value : "")).join("") ?? "";
  return { language: named?.slice("language-".length) ?? "", text: text.replace(/\n$/, "") };
}
