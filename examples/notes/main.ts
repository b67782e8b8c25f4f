// A plain agent with state, SQL and schedules, kept in `.perdure/`, and a page that talks to it.
import { readFileSync } from "node:fs";
import { PerdureError } from "perdure";
import { serve } from "perdure/node";
import type { ServedHost } from "perdure/node";
import { Notes } from "./notes.ts";

const page = readFileSync(new URL("./page.html", import.meta.url), "utf8");

try {
  const { url } = await open(Number(process.env.PORT ?? 8787));
  console.log(`
Perdure is running at ${url}

  Open it in two browser tabs, or try:

    curl -X POST ${url}/agents/notes/main -d "buy milk"
    curl ${url}/agents/notes/main

  Everything is kept in .perdure/ and is there again after a restart. Ctrl-C stops.
`);
} catch (error) {
  console.error(whatToDo(error));
  process.exit(1);
}

function open(port: number): Promise<ServedHost> {
  return serve({
    agents: { Notes },
    dir: ".perdure",
    port,
    fetch: (request) =>
      new URL(request.url).pathname === "/"
        ? new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } })
        : new Response("Not Found", { status: 404 }),
  });
}

function whatToDo(error: unknown): string {
  if (PerdureError.is(error)) return error.message;
  if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") {
    return "The port is taken. Stop what uses it, or choose another: PORT=3000 node …";
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
