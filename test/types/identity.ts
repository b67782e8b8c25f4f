// Checked by the compiler (`npm run check`), never run.
import { jsonSchema, tool } from "ai";
import { AIChatAgent, type ApprovalRequest, durableTool, getCurrentAgent, type Identity, Think } from "perdure";
import type { BeforeHook } from "perdure/node";
import { expectTypeOf } from "vitest";

export const anna: Identity = { id: "u1", name: "Anna", roles: ["admin"], org: { id: 7, plan: null } };
// @ts-expect-error an identity has an id
export const nobody: Identity = { name: "Anna" };
// @ts-expect-error JSON cannot hold it
export const odd: Identity = { id: "u1", since: new Date(0) };

export const hooks: BeforeHook[] = [
  () => undefined,
  () => ({ identity: anna }),
  async (request) => ({ identity: anna, request }),
  () => new Response(),
  // @ts-expect-error not a verdict
  () => ({ user: anna }),
];

expectTypeOf(getCurrentAgent().identity).toEqualTypeOf<Identity | undefined>();

export class Talk extends Think {
  override authorizeApproval({ call, identity, approved }: ApprovalRequest) {
    expectTypeOf(call.requestedBy).toEqualTypeOf<Identity | undefined>();
    return approved && identity?.id !== call.requestedBy?.id;
  }
  override getApprover(_connection: unknown, identity?: Identity) {
    return identity?.name;
  }
}

export class Chat extends AIChatAgent {
  override async authorizeApproval({ identity }: ApprovalRequest) {
    return identity !== undefined;
  }
}

export class Wrong extends Think {
  // @ts-expect-error a text allows nothing
  override authorizeApproval() {
    return "yes";
  }
}

const pay = tool({ inputSchema: jsonSchema<{ amount: number }>({ type: "object" }), execute: () => "paid" });
durableTool(pay, { needsApproval: ({ amount }, { identity }) => amount > 9 && `Pay ${amount}, ${identity?.name}?` });
durableTool(pay, { needsApproval: "Pay?" });
// @ts-expect-error the input has no such field
durableTool(pay, { needsApproval: ({ cents }) => cents > 9 });
