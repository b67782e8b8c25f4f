import "./markdown.css";
import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CodeBlock, codeOf } from "./code-block.tsx";
import { splitBlocks } from "./split-blocks.ts";

const plugins = [remarkGfm];

/** Headings begin below the page's own and the message's; links leave the page as it is; wide things scroll alone. */
const components: Components = {
  h1: ({ children }) => <h3 className="heading-1">{children}</h3>,
  h2: ({ children }) => <h4 className="heading-2">{children}</h4>,
  h3: ({ children }) => <h5 className="heading-3">{children}</h5>,
  h4: ({ children }) => <h6 className="heading-3">{children}</h6>,
  h5: ({ children }) => <h6 className="heading-3">{children}</h6>,
  h6: ({ children }) => <h6 className="heading-3">{children}</h6>,
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  // Fetching a picture tells its server who reads. A model can put anything into the address.
  img: ({ src, alt }) => (
    <SafeLink href={typeof src === "string" ? src : undefined}>{alt === "" || !alt ? "Image" : alt}</SafeLink>
  ),
  table: ({ children }) => (
    <div className="table-scroll" role="region" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
  pre: ({ node }) => <CodeBlock {...codeOf(node)} />,
  input: ({ checked }) => (
    <input type="checkbox" checked={checked === true} disabled aria-label={checked === true ? "Done" : "Not done"} />
  ),
};

const Block = memo(function Block({ text }: { readonly text: string }): ReactNode {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={components}>
      {text}
    </ReactMarkdown>
  );
});

/** Text of a model. While it grows only its last block is drawn again. */
export const Markdown = memo(function Markdown({ text, live }: { readonly text: string; readonly live: boolean }) {
  return (
    <div className="markdown" data-live={live || undefined}>
      {splitBlocks(text).map((block, index) => (
        <Block key={index} text={block} />
      ))}
    </div>
  );
});

function SafeLink({ href, children }: { readonly href: string | undefined; readonly children: ReactNode }): ReactNode {
  if (href === undefined || href === "") return <span>{children}</span>;
  // A footnote stays on the page.
  if (href.startsWith("#")) return <a href={href}>{children}</a>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}
