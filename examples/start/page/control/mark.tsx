import type { ReactNode } from "react";

/** The mark of Perdure: one line that goes through a loop and carries on. */
export function Mark({ className }: { readonly className?: string }): ReactNode {
  return (
    <svg className={className} viewBox="0 0 32 24" fill="none" stroke="currentColor" aria-hidden="true">
      <path d="M2 18.5h8c11.5 0 12.5-15 6-15s-5.5 15 6 15h8" strokeWidth="2.4" strokeLinecap="round" pathLength={1} />
    </svg>
  );
}
