import { readUpTo } from "../base/bytes.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { isRecord } from "../base/json.ts";
import { NANO_DOLLARS } from "../ledger/prices.ts";
import { groupUsage, type UsageGroup } from "../store/usage.ts";
import { parseAgentId } from "../wire/agent-path.ts";
import { type AdminAsked, type AdminRoute, countIn, known, page, pathOf } from "./asked.ts";
import { describeAgent, questionsIn, readMessages, summarise } from "./agent-report.ts";
import { COPY_ROUTES } from "./copy-routes.ts";
import { currentSession, readOwnerLine } from "../store/session.ts";
import { tapeOf } from "./tape.ts";
import type { AdminHouse, RunningHouse } from "./house.ts";
import { describeRequest, describeTurnWhole, listTurns, lookForRequest } from "./turn-report.ts";

/*
 * What operators can ask for, under `/_perdure/v1/`. Lists come in pages: `next`, where there is one, is the `after` of the
 * next page. Reading wakes nobody.
 */

const PAGE_MESSAGES = 100;
const PAGE_TURNS = 50;
const SHOWN_AUDIT = 100;
const MAX_BODY_BYTES = 1024 * 1024;

/** Things to be told one by one, as they come. */
export class AdminStream {
  readonly items: AsyncIterable<object>;
  constructor(items: AsyncIterable<object>) {
    this.items = items;
  }
}

/** All of them. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  { method: "GET", shape: "host", act: "admin.host", answer: ({ house }) => house.describe() },
  {
    method: "GET",
    shape: "agents",
    act: "admin.agents",
    answer: (asked) =>
      page(asked, (id) => [asked.house.look(id, (rows) => summarise(rows, id, asked.house.isAwake(id)))]),
  },
  {
    method: "GET",
    shape: "agents/{id}",
    act: "admin.agent",
    answer: ({ house, params }) => {
      const id = known(house, params);
      return house.look(id, (rows) => describeAgent(rows, id, house.isAwake(id)));
    },
  },
  {
    method: "GET",
    shape: "agents/{id}/messages",
    act: "admin.messages",
    answer: ({ house, params, query }) => {
      const session = query.get("session") ?? undefined;
      const limit = countIn(query, "limit", PAGE_MESSAGES);
      const last = house.look(known(house, params), (rows) => readMessages(rows, session, limit));
      if (last === undefined) throw new PerdureError("not_found", `There is no session ${JSON.stringify(session)}.`);
      return { messages: last.messages, ...(last.more && { more: true }) };
    },
  },
  {
    method: "GET",
    shape: "agents/{id}/turns",
    act: "admin.turns",
    answer: ({ house, params, query }) => {
      const limit = countIn(query, "limit", PAGE_TURNS);
      return { items: house.look(known(house, params), (rows) => listTurns(rows, limit)) };
    },
  },
  {
    method: "GET",
    shape: "agents/{id}/turns/{turn}",
    act: "admin.turns",
    answer: ({ house, params }) =>
      house.look(known(house, params), (rows) => describeTurnWhole(rows, params.turn ?? "")),
  },
  {
    method: "GET",
    shape: "agents/{id}/tape",
    act: "admin.tape",
    answer: ({ house, params, query }) => {
      const id = known(house, params);
      const session = query.get("session") ?? house.look(id, (rows) => currentSession(rows));
      if (house.look(id, (rows) => readOwnerLine(rows, session)) === undefined)
        throw new PerdureError("not_found", `There is no session ${JSON.stringify(session)}.`);
      return new AdminStream(tapeOf((read) => house.look(id, read), id, session));
    },
  },
  {
    method: "GET",
    shape: "agents/{id}/calls/{call}/request",
    act: "admin.request",
    answer: ({ house, params }) =>
      describeRequest(house.look(known(house, params), (rows) => lookForRequest(rows, params.call ?? ""))),
  },
  {
    method: "GET",
    shape: "agents/{id}/calls/{call}/request/now",
    act: "admin.code",
    answer: async ({ house, params }) => {
      const id = known(house, params);
      const found = house.look(id, (rows) => lookForRequest(rows, params.call ?? ""));
      const now = await running(house).call(parseAgentId(id), "nextRequest", [found.row.session]);
      return describeRequest(found, now as { instructions: unknown; tools: unknown });
    },
  },
  {
    method: "GET",
    shape: "approvals",
    act: "admin.approvals",
    answer: (asked) => page(asked, (id) => asked.house.look(id, (rows) => questionsIn(rows, id))),
  },
  {
    method: "GET",
    shape: "cost",
    act: "admin.cost",
    answer: (asked) => {
      const by = groupIn(asked.query);
      return page(asked, (id) =>
        asked.house
          .look(id, (rows) => groupUsage(rows, by))
          .map(({ cost, ...group }) => ({ agent: id, ...group, usd: cost / NANO_DOLLARS })),
      );
    },
  },
  { method: "GET", shape: "events", act: "admin.events", answer: (asked) => new AdminStream(eventsOf(asked)) },
  {
    method: "GET",
    shape: "audit",
    act: "admin.audit",
    answer: ({ house, query }) => ({ items: house.audit?.list(countIn(query, "limit", SHOWN_AUDIT)) ?? [] }),
  },
  {
    method: "GET",
    shape: "check",
    act: "admin.check",
    answer: (asked) => page(asked, (id) => checkAgent(asked.house, id)),
  },
  {
    method: "GET",
    shape: "check/files",
    act: "admin.check",
    answer: ({ house: { copies } }) => ({
      orphans: copies?.orphans() ?? [],
      lastBackupAt: copies?.lastBackup() ?? null,
    }),
  },
  {
    method: "POST",
    shape: "agents/{id}/chat",
    act: "admin.chat",
    notes: ({ params }) => params.session ?? null,
    answer: async ({ house, params, body, who, request }) => {
      const id = pathOf(params);
      const { message, session, requestId } = body;
      if (typeof message !== "string" || message.trim() === "")
        throw new PerdureError("bad_input", "The body must have a `message`, the text to send.");
      const rest = typeof session === "string" ? `/chat?_session=${encodeURIComponent(session)}` : "/chat";
      const said = new Request(new URL(rest, "http://perdure"), {
        method: "POST",
        headers: { "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify({ message, ...(typeof requestId === "string" && { requestId }) }),
        signal: request.signal,
      });
      const identity = { id: `operator:${who}`, name: who, role: "operator" };
      return running(house).request(parseAgentId(id), said, "/chat", identity);
    },
  },
  {
    method: "POST",
    shape: "agents/{id}/approvals/{call}",
    act: "admin.answer",
    notes: ({ params, body }) => `${params.call} ${body.approved === true ? "approved" : "denied"}`,
    answer: async ({ house, params, body, who }) => {
      const { approved, reason, session } = body;
      if (typeof approved !== "boolean")
        throw new PerdureError("bad_input", "The body must have `approved`: true or false.");
      const host = running(house);
      const options = {
        approver: who,
        ...(typeof reason === "string" && { reason }),
        ...(typeof session === "string" && { session }),
      };
      const done = await host.call(parseAgentId(known(house, params)), "answerApproval", [
        params.call,
        approved,
        options,
      ]);
      if (done === true) return { changed: true };
      throw new PerdureError(
        "conflict",
        "No such call waits there. It was answered before, its time is over, or its turn was stopped.",
      );
    },
  },
  {
    method: "POST",
    shape: "agents/{id}/turns/{turn}/stop",
    act: "admin.stop",
    notes: ({ params }) => params.turn ?? null,
    answer: async ({ house, params }) => {
      const done = await running(house).call(parseAgentId(known(house, params)), "abortRequest", [params.turn]);
      if (done === true) return { changed: true };
      throw new PerdureError("conflict", "No such turn is under way there. It has ended, or was never asked for.");
    },
  },
  {
    method: "DELETE",
    shape: "agents/{id}",
    act: "admin.erase",
    notes: () => null,
    answer: async ({ house, params }) => {
      await house.remove(parseAgentId(known(house, params)));
      return { changed: true };
    },
  },
  ...COPY_ROUTES,
];

async function checkAgent({ copies, ...house }: AdminHouse, id: string): Promise<object[]> {
  try {
    const found = copies?.schemaOf(id);
    // Whoever reads older rows brings them up to date, and this is only to look.
    if (found === undefined || found.schema >= found.newest) house.look(id, (rows) => describeAgent(rows, id, false));
    const flaws = (await copies?.flaws(id)) ?? [];
    return [
      { id, ok: flaws.length === 0, schema: found?.schema, ...(flaws.length > 0 && { error: flaws.join("; ") }) },
    ];
  } catch (thrown) {
    return [{ id, ok: false, error: errorText(thrown) }];
  }
}

/** Events that wait for a reader who is slow, at most. */
const MAX_WAITING = 10_000;

async function* eventsOf({ house, query, request }: AdminAsked): AsyncIterable<object> {
  const only = query.get("agent");
  const waiting: object[] = [];
  let missed = 0;
  let wake = () => {};
  const leave = running(house).follow((event) => {
    if (only !== null && event.id !== only) return;
    if (waiting.length < MAX_WAITING) waiting.push(event);
    else missed++;
    wake();
  });
  const gone = () => wake();
  request.signal.addEventListener("abort", gone);
  try {
    yield { type: "following", timestamp: Date.now() };
    while (!request.signal.aborted) {
      yield* waiting.splice(0);
      if (missed > 0) {
        yield { type: "missed", events: missed };
        missed = 0;
      }
      if (waiting.length === 0 && !request.signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    leave();
    request.signal.removeEventListener("abort", gone);
  }
}

function running(house: AdminHouse): RunningHouse {
  if (house.running !== undefined) return house.running;
  throw new PerdureError(
    "bad_state",
    "No host runs here, and this takes the agents' own code. Start the app, then try again.",
  );
}

const GROUPS: ReadonlySet<string> = new Set<UsageGroup>(["model", "purpose", "day"]);

function groupIn(query: URLSearchParams): UsageGroup {
  const by = query.get("by") ?? "model";
  if (GROUPS.has(by)) return by as UsageGroup;
  throw new PerdureError("bad_input", `\`by\` must be one of ${[...GROUPS].join(", ")}.`);
}

/** The body of a request as a JSON object. No more of it is read than it may have. @throws PerdureError `bad_input`, `too_large` */
export async function readAdminBody(request: Request): Promise<Record<string, unknown>> {
  const tooMuch = () => new PerdureError("too_large", `A body may have ${MAX_BODY_BYTES} bytes.`);
  // How long it is it need not say.
  if (Number(request.headers.get("content-length") ?? 0) > MAX_BODY_BYTES) throw tooMuch();
  if (request.body === null) return {};
  const text = new TextDecoder().decode(await readUpTo(request.body, MAX_BODY_BYTES, tooMuch));
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Answered below.
  }
  if (isRecord(value)) return value;
  throw new PerdureError("bad_input", "The body must be a JSON object.");
}
