/** What became of the files that a jailed run changed. Paths are those of the `SandboxFiles`. */
export interface FilesReport {
  readonly written: readonly string[];
  readonly deleted: readonly string[];
  /** Changed by the run and, meanwhile, by somebody else. Theirs stays; `kept` is where the run's version is, if it has one. */
  readonly conflicts: readonly { readonly path: string; readonly kept: string | undefined }[];
  /** What did not come back, and why: bounds, links that lead out, pipes, devices. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
}

/** How much of a workspace goes into a jail, and how much comes back. */
export interface CheckoutBounds {
  /** Files, folders and links. */
  readonly files: number;
  /** Bytes of all files. */
  readonly bytes: number;
  /** Bytes of one file. */
  readonly fileBytes: number;
}

export const DEFAULT_CHECKOUT: CheckoutBounds = { files: 10_000, bytes: 256 << 20, fileBytes: 32 << 20 };
