import { Component, type ReactNode } from "react";
import { Mark } from "./control/mark.tsx";

interface Props {
  readonly children: ReactNode;
}

/** Shows what went wrong while drawing, and a way out, instead of an empty page. */
export class ErrorBoundary extends Component<Props, { readonly error: Error | undefined }> {
  override state: { readonly error: Error | undefined } = { error: undefined };

  static getDerivedStateFromError(thrown: unknown): { readonly error: Error } {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div className="crash" role="alert" data-testid="crash">
        <Mark className="crash-mark" />
        <h1>This page has a problem</h1>
        <p>What you said is kept on the server. Load the page again to go on.</p>
        <p className="crash-reason">{error.message}</p>
        <button type="button" className="button button-primary" onClick={() => location.reload()}>
          Load again
        </button>
      </div>
    );
  }
}
