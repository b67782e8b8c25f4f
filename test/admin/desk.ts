import { request as ask } from "node:http";
import { join } from "node:path";
import { Think } from "perdure";
import { type ScriptedModel, scriptedModel } from "perdure/testing";
import { tool } from "ai";
import { z } from "zod";

/** Where the door is. */
export const V1 = "/_perdure/v1";

export const SECRET_KEY = "sk-test-abcdefghijklmnop1234";

/** A class of agents that may pay, if a person says yes. */
export function deskOf(script: Parameters<typeof scriptedModel>[0]): {
  Desk: ReturnType<typeof makeDesk>;
  model: ScriptedModel;
} {
  const model = scriptedModel(script);
  return { Desk: makeDesk(model), model };
}

/** What was paid, in this process. */
export const paid: number[] = [];

function makeDesk(model: ScriptedModel) {
  return class Desk extends Think {
    override getModel() {
      return model;
    }
    override getTools() {
      const pay = tool({
        description: "Pays.",
        inputSchema: z.object({ amount: z.number(), apiKey: z.string().optional() }),
        needsApproval: true,
        execute: ({ amount }) => {
          paid.push(amount);
          return "paid";
        },
      });
      return { pay };
    }
  };
}

/** What somebody is answered. */
export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Asks a host by its socket. */
export function bySocket(dir: string, method: string, path: string, body?: object): Promise<Answered> {
  return send(
    // A socket that is kept could be one of a host that has stopped.
    {
      agent: false,
      socketPath: join(dir, "admin.sock"),
      method,
      path: `${V1}/${path}`,
      headers: { host: "localhost" },
    },
    body,
  );
}

/** Sends a request as it is, with headers that `fetch` would not send. */
export function send(options: Parameters<typeof ask>[1] & object, body?: object): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asked = ask(options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => (text += piece));
      response.on("error", reject);
      response.on("end", () => {
        let parsed: Record<string, unknown> = { text };
        try {
          parsed = JSON.parse(text) as Record<string, unknown>;
        } catch {
          // As it is.
        }
        resolve({ status: response.statusCode ?? 0, body: parsed });
      });
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
