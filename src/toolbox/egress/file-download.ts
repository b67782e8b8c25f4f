import type { Experimental_DownloadFunction as DownloadFunction } from "ai";
import { loadAiSdk } from "../../base/ai-sdk.ts";
import { readUpTo } from "../../base/bytes.ts";
import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { createGuardedFetch, type GuardedFetchOptions } from "./guarded-fetch.ts";

/** Where files of messages may be loaded from, for models that cannot do it themselves. */
export interface FileDownloadOptions extends Pick<
  GuardedFetchOptions,
  "allow" | "allowPrivate" | "ca" | "onDecision" | "resolve"
> {
  /** The most bytes of one file. Default: 100 MB. */
  readonly maxBytes?: number;
}

const fileDownloadOptionsNames = namesOf<FileDownloadOptions>()("allow allowPrivate ca onDecision resolve maxBytes");

const DEFAULT_MAX_BYTES = 100_000_000;

/** Loads one file. */
export type LoadFile = (file: { url: URL; abortSignal?: AbortSignal }) => Promise<{
  data: Uint8Array;
  mediaType: string | undefined;
}>;

/**
 * For `experimental_download` of the AI SDK: loads files whose addresses somebody else wrote. It reaches public addresses only,
 * by what their names resolve to, and checks redirects anew.
 * @throws PerdureError `bad_config` for invalid rules. The function rejects as `createGuardedFetch` does, and with `limit` for
 *   files that are too large.
 */
export function createFileDownload(options: FileDownloadOptions = {}): DownloadFunction {
  const load = fileLoader(options);
  return (files) =>
    Promise.all(files.map(async ({ url, isUrlSupportedByModel }) => (isUrlSupportedByModel ? null : load({ url }))));
}

/** What {@link createFileDownload} does, for one file that somebody may stop waiting for. */
export function fileLoader(options: FileDownloadOptions = {}): LoadFile {
  refuseUnknown(options, fileDownloadOptionsNames, "createFileDownload()");
  const { maxBytes = DEFAULT_MAX_BYTES, ...rules } = options;
  if (!Number.isInteger(maxBytes) || maxBytes < 1)
    throw new PerdureError("bad_config", "`maxBytes` of createFileDownload() must be a whole number above 0.");
  const fetch = createGuardedFetch(rules);
  let inline: LoadFile | undefined;
  return async ({ url, abortSignal }) => {
    // Nobody is asked for what stands in the address itself.
    if (url.protocol === "data:") return (inline ??= (await loadAiSdk()).createDownload() as LoadFile)({ url });
    const response = await fetch(url, abortSignal === undefined ? {} : { signal: abortSignal });
    if (!response.ok) {
      await response.body?.cancel();
      throw new PerdureError("call_failed", `${url.host} answered ${response.status}.`);
    }
    const tooMuch = () => new PerdureError("limit", `The file at ${url.host} is larger than ${maxBytes} bytes.`);
    const body = (response.body ?? []) as AsyncIterable<Uint8Array>;
    return {
      data: await readUpTo(body, maxBytes, tooMuch),
      mediaType: response.headers.get("content-type") ?? undefined,
    };
  };
}
