// A Telegram bot. With TELEGRAM_BOT_TOKEN it is a real one, also behind NAT; without, it talks to a Telegram of its own, and a page
// shows what you would see on your phone.
import { readFileSync } from "node:fs";
import { type ToolSet, jsonSchema, tool } from "ai";
import { Think } from "perdure";
import { defineMessengers } from "perdure/messengers";
import { telegramMessenger } from "perdure/messengers/telegram";
import { memoryStorage, serve } from "perdure/node";
import { type FakeTelegram, fakeTelegram, type ScriptedCall } from "perdure/testing";
import { type Line, pickModel } from "../shared/model.ts";

const { TELEGRAM_BOT_TOKEN: token, TELEGRAM_ALLOW: allowed, TELEGRAM_API_URL: apiUrl } = process.env;
const fake = token === undefined ? await fakeTelegram() : undefined;
const YOU = { id: 7, first_name: "You" };

function line({ userText, step }: ScriptedCall): Line {
  if (/\bmail\b/i.test(userText)) {
    const input = { to: "ada@example.com", text: "Hello from the bot." };
    return step === 0 ? { toolName: "send_mail", input } : "The mail is on its way.";
  }
  if (/\blong\b/i.test(userText))
    return Array.from({ length: 40 }, (_, i) => `**${i + 1}.** A paragraph that takes its time, with \`code\`.`).join(
      "\n\n",
    );
  return 'I answer in *this* message as it grows. Say "mail" to be asked for approval, "long" for an answer to `/stop`.';
}

class Bot extends Think {
  override workspaceTools = false as const;
  override getModel() {
    return pickModel(line);
  }
  override getTools(): ToolSet {
    const text = { type: "string" } as const;
    return {
      send_mail: tool({
        description: "Sends a mail. Somebody has to approve it.",
        inputSchema: jsonSchema<{ to: string; text: string }>({ type: "object", properties: { to: text, text } }),
        needsApproval: true,
        execute: ({ to }) => `sent to ${to}`,
      }),
    };
  }
  override getMessengers() {
    if (fake !== undefined) {
      const own = { token: fake.token, apiUrl: fake.url, allow: [String(YOU.id)] };
      return defineMessengers({ telegram: telegramMessenger(own) });
    }
    const allow = allowed === undefined ? {} : { allow: allowed.split(",").map((id) => id.trim()) };
    const server = apiUrl === undefined ? {} : { apiUrl };
    return defineMessengers({ telegram: telegramMessenger({ token: token ?? "", ...server, ...allow }) });
  }
}

const { url } = await serve({
  ...{ agents: { Bot }, port: Number(process.env.PORT ?? 8787), start: [["Bot", "main"]] },
  // A Telegram of our own forgets all when it ends, and begins to count anew: so does its bot.
  ...(fake === undefined ? { dir: ".perdure" } : { storage: memoryStorage() }),
  ...(fake !== undefined && { fetch: (request: Request) => phone(fake, request) }),
});
console.log(
  fake === undefined
    ? "\nThe bot is running. Write to it at Telegram. Ctrl-C stops."
    : `\nThere is no TELEGRAM_BOT_TOKEN, so this is a Telegram of our own: open ${url}\n\nCtrl-C stops.`,
);

/** The page, and what it asks for. */
async function phone(telegram: FakeTelegram, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (request.method === "POST") {
    const body = (await request.json()) as { text?: string; id?: number; label?: string };
    if (body.text !== undefined) telegram.says(YOU.id, YOU, body.text);
    else if (body.id !== undefined) telegram.presses(YOU.id, YOU, body.id, body.label ?? "");
    return new Response("OK");
  }
  if (pathname === "/chat") return Response.json({ messages: telegram.seen(YOU.id), told: telegram.told });
  const page = readFileSync(new URL("./page.html", import.meta.url), "utf8");
  return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
}
