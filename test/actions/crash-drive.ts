// What the driver of the crash tests of actions and its program say to each other.
import type { UIMessage } from "ai";
import type { Fact } from "perdure/testing";
import type { ActionRecord } from "../../src/tool/action-ledger.ts";

export type ActionCommand =
  | { readonly type: "submit"; readonly text: string }
  | { readonly type: "look"; readonly id: number };

/** How things stand when nothing runs. */
export interface ActionLook extends Fact {
  readonly type: "look";
  readonly id: number;
  readonly messages: readonly UIMessage[];
  readonly actions: readonly ActionRecord[];
  readonly turns: readonly { readonly status: string }[];
}
