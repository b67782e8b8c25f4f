import type { Page } from "playwright-core";

/** Counts what the sockets of a tab receive, from now on. */
export async function countSocketBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on("Network.webSocketFrameReceived", ({ response }) => {
    bytes += Buffer.byteLength(response.payloadData);
  });
  await session.send("Network.enable");
  return () => bytes;
}
