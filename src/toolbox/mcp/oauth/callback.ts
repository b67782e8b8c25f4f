/** How a sign-in ended. */
export type McpOAuthResult =
  | { readonly serverId: string; readonly authSuccess: true; readonly authError?: undefined }
  | { readonly serverId?: string; readonly authSuccess: false; readonly authError: string };

/** What people see when they come back from signing in. */
export interface McpOAuthCallbackOptions {
  /** Where they are sent. Default: the start page of the host that they came back to. */
  readonly successRedirect?: string;
  /** Where they are sent when it failed, with `error` in the query. Default: a page that says so. */
  readonly errorRedirect?: string;
  /** Answers itself, instead of both. What it throws is answered with 500. */
  readonly customHandler?: (result: McpOAuthResult) => Response | Promise<Response>;
}

const MAX_ERROR_CHARS = 300;

/** Answers the person who came back. `origin`: where the app is. */
export async function answerCallback(
  result: McpOAuthResult,
  options: McpOAuthCallbackOptions,
  origin: string,
): Promise<Response> {
  if (options.customHandler !== undefined) return options.customHandler(result);
  if (result.authSuccess) return redirectTo(new URL(options.successRedirect ?? "/", origin));
  const error = result.authError.slice(0, MAX_ERROR_CHARS);
  if (options.errorRedirect === undefined) {
    return new Response(`Signing in did not work: ${error}\n`, {
      status: 400,
      headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
    });
  }
  const url = new URL(options.errorRedirect, origin);
  url.searchParams.set("error", error);
  return redirectTo(url);
}

/** The page that they leave has a code in its address: it must not be told to the next one. */
function redirectTo(url: URL): Response {
  return new Response(null, {
    status: 302,
    headers: { location: url.href, "cache-control": "no-store", "referrer-policy": "no-referrer" },
  });
}
