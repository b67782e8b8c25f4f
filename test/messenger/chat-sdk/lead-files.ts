import { Readable } from "node:stream";

/** Where Discord's adapter sends files to, whatever it was told. */
const DISCORD = "https://discord.com/api/v10";

/**
 * Addresses of files that adapters do not let anybody change lead to the driver of the test, in this process.
 * @returns what the adapter is made of besides
 */
export async function leadFiles(
  name: string,
  { api, files }: { readonly api: string; readonly files: string },
): Promise<Record<string, unknown>> {
  const real = globalThis.fetch;
  const read = async (url: string, headers: Record<string, string>) => {
    const response = await real(`${files}/?url=${encodeURIComponent(url)}`, { headers });
    if (!response.ok) throw new Error(`Nothing can be read from ${url}`);
    return Buffer.from(await response.arrayBuffer());
  };
  if (name === "slack") {
    const fileTransport = async (url: URL, _signal: AbortSignal, headers: Record<string, string> = {}) =>
      Object.assign(Readable.from([await read(url.href, headers)]), { statusCode: 200, headers: {} });
    return { fileTransport };
  }
  if (name !== "discord") return {};
  const { DiscordAdapter } = await import("@chat-adapter/discord");
  const reads = DiscordAdapter.prototype as unknown as { downloadAttachment(url: string): Promise<Uint8Array> };
  reads.downloadAttachment = (url) => read(url, {});
  globalThis.fetch = (input, init) => real(typeof input === "string" ? input.replace(DISCORD, api) : input, init);
  return { apiUrl: DISCORD };
}
