/** One decision about one connection. Redirects are decided each for themselves. */
export interface EgressDecision {
  readonly allowed: boolean;
  /** `fetch`: a guest asked. `proxy`, `tunnel`: a process came to the proxy. */
  readonly via: "fetch" | "proxy" | "tunnel";
  readonly method: string;
  /** Without the query. What it was when it is no URL, shortened. */
  readonly url: string;
  /** How many redirects led here. */
  readonly hop: number;
  /** The rule that let it through. */
  readonly rule?: string;
  /** What it was connected to. */
  readonly address?: string;
  /** Why it was refused. */
  readonly reason?: string;
}

/** Told of each decision, before anything is sent. What it throws is ignored; it must not be slow. */
export type OnDecision = (decision: EgressDecision) => void;

const MAX_SHOWN = 500;

/** Tells of a decision; never throws. */
export function tell(onDecision: OnDecision | undefined, decision: EgressDecision): void {
  try {
    onDecision?.(decision);
  } catch {
    // Watching must not change what is decided.
  }
}

/** A URL, or what was meant as one, for a decision: without the query, which often carries keys. */
export function shownUrl(url: URL | string): string {
  if (typeof url !== "string") return `${url.origin}${url.pathname}`.slice(0, MAX_SHOWN);
  return url
    .slice(0, MAX_SHOWN)
    .replace(/[?#].*$/s, "")
    .replace(/\/\/[^/]*@/, "//");
}
