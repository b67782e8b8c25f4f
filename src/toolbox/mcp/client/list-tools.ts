import type { Client } from "@modelcontextprotocol/client";
import { PerdureError } from "../../../base/error.ts";
import { isRecord } from "../../../base/json.ts";
import type { ClientSdk } from "../load-sdk.ts";

/** More pages of a list than this is a server that never ends. */
export const MAX_LIST_PAGES = 20;

/**
 * A server's tools as it describes them, unchecked (see `boundTools`). The package refuses a whole list for one malformed tool;
 * then the list is read again without it.
 * @throws what the package throws, PerdureError `bad_input` when it is no list at all.
 */
export async function listTools(sdk: ClientSdk, client: Client, signal: AbortSignal): Promise<readonly unknown[]> {
  try {
    return (await client.listTools(undefined, { signal })).tools;
  } catch (thrown) {
    if (!isInvalid(sdk, thrown)) throw thrown;
    return readAsTheyAre(client, signal);
  }
}

async function readAsTheyAre(client: Client, signal: AbortSignal): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_LIST_PAGES; page++) {
    const params = cursor === undefined ? {} : { params: { cursor } };
    const result = await client.request({ method: "tools/list", ...params }, ANYTHING, { signal });
    if (!isRecord(result) || !Array.isArray(result.tools))
      throw new PerdureError("bad_input", "The server's list of tools is not a list.");
    for (const tool of result.tools as unknown[]) tools.push(tool);
    if (typeof result.nextCursor !== "string" || result.nextCursor === cursor) break;
    cursor = result.nextCursor;
  }
  return tools;
}

function isInvalid(sdk: ClientSdk, thrown: unknown): boolean {
  return thrown instanceof sdk.SdkError && thrown.code === sdk.SdkErrorCode.InvalidResult;
}

const ANYTHING = {
  "~standard": { version: 1 as const, vendor: "perdure", validate: (value: unknown) => ({ value }) },
};
