/** What the process that bundles is asked. Everything is plain JSON. */
export type BundleJob =
  /** Which modules the code imports. */
  | {
      readonly kind: "imports";
      readonly sources: readonly string[];
      readonly own: readonly string[];
      readonly store: string;
    }
  /** One module as ESM. */
  | {
      readonly kind: "bundle";
      readonly specifier: string;
      readonly names: readonly string[] | null;
      readonly hints: readonly string[];
      readonly store: string;
      /** Packages that may be imported. */
      readonly allowed: readonly string[];
    };

/** What went wrong, and whose it is to mend. */
export interface BundleFault {
  readonly code: "not_allowed" | "bad_input" | "bad_config" | "limit" | "call_failed";
  readonly message: string;
}

/** Its answer. */
export type BundleAnswer =
  | { readonly ok: true; readonly imports: readonly string[] }
  | { readonly ok: true; readonly source: string }
  | { readonly ok: false; readonly fault: BundleFault };
