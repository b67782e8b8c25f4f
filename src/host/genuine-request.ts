import { PerdureError } from "../base/error.ts";

/** How much of a body that is too large is still read and thrown away, so that its sender can read the answer. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/**
 * The request as an object of the platform's own class, with a bounded body: some servers hand out look-alikes that
 * `fetch(request)` refuses. The body streams through, failing with `too_large` past `maxBytes`; do not read `request` after that.
 * @throws PerdureError `too_large` when the request already says so.
 */
export function boundedRequest(request: Request, maxBytes: number): Request {
  if (Number(request.headers.get("content-length")) > maxBytes) throw tooLarge(maxBytes);
  const genuine = Object.getPrototypeOf(request) === Request.prototype;
  if (genuine && request.body === null) return request;
  return rebuild(request, request.url, hasBody(request) ? whenRead(() => request.body, maxBytes) : null);
}

/** The same request with another path. The body streams through. */
export function withPath(request: Request, pathname: string): Request {
  const url = new URL(request.url);
  url.pathname = pathname;
  return rebuild(request, url, request.body);
}

function rebuild({ method, headers, signal }: Request, url: string | URL, body: Request["body"]): Request {
  const init: RequestInit & { duplex?: "half" } = { method, headers, signal };
  if (body !== null) {
    init.body = body;
    init.duplex = "half";
  }
  return new Request(url, init);
}

function hasBody({ method }: Request): boolean {
  return method !== "GET" && method !== "HEAD";
}

/** Asks for the body only when somebody reads it: once asked, a server no longer discards an unread upload by itself. */
function whenRead(open: () => Request["body"], maxBytes: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  let bytes = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        reader ??= open()?.getReader();
        const next = await reader?.read();
        if (reader === undefined || next?.value === undefined) return controller.close();
        bytes += next.value.byteLength;
        if (bytes <= maxBytes) return controller.enqueue(next.value);
        controller.error(tooLarge(maxBytes));
        void discard(reader);
      },
      cancel: (reason) => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Reads on for nobody. Ends with the body, with its connection, or when it is too much even for that. */
async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let bytes = 0;
  try {
    while (bytes <= MAX_DISCARDED_BYTES) {
      const { value } = await reader.read();
      if (value === undefined) return;
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch {
    // Whoever sent it has gone.
  }
}

function tooLarge(maxBytes: number): PerdureError {
  return new PerdureError("too_large", `The body is larger than ${maxBytes} bytes, which is this host's limit.`);
}
