import type { Page, WebSocketRoute } from "playwright-core";

/** A point in what the server sends beyond which nothing gets until the test has looked. */
export interface FrameGate {
  /** All that was kept back arrives, in order; nothing is kept back any more. */
  open(): void;
}

/**
 * Lets frames pass up to the first that `last` accepts, and keeps back what follows it on that socket. So a state that
 * is over in a moment can be looked at for as long as it takes. Sockets that are open already are not gated: the page
 * has to be loaded anew.
 */
export async function gateFrames(page: Page, last: (frame: string) => boolean): Promise<FrameGate> {
  let opened = false;
  const flows: (() => void)[] = [];
  await page.routeWebSocket(/.*/, (socket) => {
    const server: WebSocketRoute = socket.connectToServer();
    let kept: (string | Buffer)[] | undefined;
    server.onMessage((frame) => {
      if (kept !== undefined && !opened) kept.push(frame);
      else {
        socket.send(frame);
        if (last(frame.toString())) kept ??= [];
      }
    });
    flows.push(() => kept?.splice(0).forEach((frame) => socket.send(frame)));
  });
  return {
    open() {
      opened = true;
      for (const flow of flows) flow();
    },
  };
}
