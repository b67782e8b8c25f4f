import type { Info } from "./contract.ts";

const ABOUT = `<!doctype html>
<html lang="en">
<title>About this app</title>
<style>
  body { max-width: 40rem; margin: 4rem auto; padding: 0 1rem; font: 1.5rem/1.5 sans-serif; }
</style>
<h1>About this app</h1>
<p>It is the demonstration of Perdure: durable agents, in one process. This page is here to be read by its tools.</p>
<p><a href="/info">Who answers</a></p>
</html>
`;

/** What the app answers besides the page and the agents. */
export function answerRequest(request: Request, info: Info): Response | undefined {
  const { pathname } = new URL(request.url);
  if (pathname === "/info") return Response.json(info);
  if (pathname === "/about") return new Response(ABOUT, { headers: { "content-type": "text/html; charset=utf-8" } });
  return undefined;
}
