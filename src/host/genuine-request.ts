/**
 * The request as an object of the platform's own class. Some servers hand out light look-alikes, which
 * `new Request(request, …)` and `fetch(request)` refuse and which lack newer methods; hooks and agents must not
 * have to know. A genuine one is returned as it is; else the body streams through, and the look-alike must not be
 * read any more.
 */
export function genuineRequest(request: Request): Request {
  if (Object.getPrototypeOf(request) === Request.prototype) return request;
  return rebuild(request, request.url, hasBody(request) ? whenRead(() => request.body) : null);
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

/**
 * Asks for the body only when somebody reads it: a server that was asked for one no longer throws an unread upload
 * away by itself, and the connection would stall.
 */
function whenRead(open: () => Request["body"]): ReadableStream<Uint8Array<ArrayBuffer>> {
  let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        reader ??= open()?.getReader();
        const next = await reader?.read();
        if (next?.value === undefined) controller.close();
        else controller.enqueue(next.value);
      },
      cancel: (reason) => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
