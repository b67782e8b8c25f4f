import "./loading.css";
import type { ReactNode } from "react";

/** Stands where the messages will be. */
export function Loading(): ReactNode {
  return (
    <div className="loading" role="status" aria-label="Loading the conversation">
      <span />
      <span />
      <span />
    </div>
  );
}
