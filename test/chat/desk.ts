// For tests of the parts of a chat that need a whole one: a real Chat on a real port, its model in the test's hands,
// without sockets. What clients would be told is written down.
import type { UIMessage } from "ai";
import { onTestFinished } from "vitest";
import { interruptedCall } from "../../src/message/repair.ts";
import { asPart } from "../../src/message/types.ts";
import { accept, acceptMore } from "../../src/turn/intake/accept.ts";
import type { Conversations as ChatType } from "../../src/turn/engine/conversations.ts";
import { Conversations } from "../../src/turn/engine/conversations.ts";
import type { TurnOutput } from "../../src/turn/engine/engine.ts";
import type { TurnAgent, TurnPolicy } from "../../src/turn/policy.ts";
import { closeSteers, takeSteers, waitingSteers } from "../../src/turn/intake/steer.ts";
import { eventually } from "../host/open-host.ts";
import { user } from "./client.ts";
import { probeHost, type ProbeHost } from "./probe-host.ts";
import { createStage, type Stage } from "./stage.ts";
import { submit } from "../../src/turn/intake/submit.ts";
import type { ChatTurnOptions } from "../../src/turn/step/config.ts";

/** A chat without an agent. */
export interface TestDesk extends ProbeHost {
  readonly chat: ChatType;
  /** What was told, as `kind id …`. */
  readonly told: string[];
  /** The next call of the model that the test has not seen yet. */
  stage(): Promise<Stage>;
  readonly calls: number;
  /** A client sends one message that is new to it. */
  send(id: string, text?: string): void;
  ids(): string[];
  /** This life ends and another one begins, on the same rows. */
  restart(): ChatType;
}

const POLICY: TurnPolicy = {
  messageConcurrency: "queue",
  maxConcurrentTurns: 1,
  maxPersistedMessages: undefined,
  chatStreamStallTimeoutMs: 0,
  chatRecovery: true,
  approvalTimeoutMs: 0,
  maxToolCallsPerStep: 64,
  titles: true,
  sanitizeMessageForPersistence: (message) => message,
  onChatRecovery: () => {},
  onChatResponse: () => {},
  authorizeApproval: () => true,
};

export async function openDesk(settings: Partial<TurnPolicy> = {}): Promise<TestDesk> {
  const probe = await probeHost();
  const stages: Stage[] = [];
  const told: string[] = [];
  let seen = 0;
  let life = 0;

  const open = (): Conversations => {
    life++;
    const mine = life;
    const note = (text: string) => {
      if (mine === life) told.push(text);
    };
    const output: TurnOutput = {
      transcript: () => note("transcript"),
      accepted: () => note("accepted"),
      streaming: ({ id }) => note(`streaming ${id}`),
      chunks: () => {},
      ended: ({ id }, { status }) => note(`ended ${id} ${status}`),
      skipped: ({ id }) => note(`skipped ${id}`),
      repeated: ({ id }) => note(`repeated ${id}`),
      turnedAway: (id) => note(`turned away ${id}`),
      joined: (id, _messageIds, turn) => note(`${id} joined ${turn.id}`),
      messageUpdated: (_session, { id }) => note(`updated ${id}`),
      recovering: ({ id }, value) => note(`recovering ${id} ${value}`),
      cleared: () => note("cleared"),
    };
    const agent: TurnAgent = {
      as: (work) => work(),
      after: (_turn, work) => work(),
      failed: (error) => note(`failed ${String(error)}`),
      repair: (part) => asPart(interruptedCall(part)),
      approver: () => undefined,
      admit: () => null,
      over: () => {},
    };
    const answerer = {
      async respond(options: ChatTurnOptions) {
        const stage = createStage(options, made.messages);
        stages.push(stage);
        return stage.answer;
      },
    };
    const side = { policy: { ...POLICY, ...settings }, silent: POLICY, agent, answerer, facts: [] };
    const work = { changed: () => {}, stopped: () => false };
    const made: Conversations = new Conversations(probe.host, side, output, work);
    return made;
  };

  let chat = open();
  onTestFinished(() => chat.halt(new Error("The test is over.")));
  return {
    ...probe,
    get chat() {
      return chat;
    },
    told,
    stage: () => eventually(() => (stages.length > seen ? stages[seen++] : undefined), "a call of the model"),
    get calls() {
      return stages.length;
    },
    send(id, text) {
      const request = { trigger: "submit", body: undefined, clientTools: undefined } as const;
      const refusal = submit(chat, { id: `r-${id}`, messages: [user(id, text)], ...request }, undefined);
      if (refusal !== undefined) throw new Error(refusal.reason);
    },
    ids: () =>
      chat.transcripts
        .of(chat.session)
        .list()
        .map(({ id }) => id),
    restart() {
      chat.halt(new Error("This life is over."));
      chat = open();
      chat.start();
      return chat;
    },
  };
}

/** Code says something and wants an answer. @returns the turn's id */
export function save(chat: ChatType, messages: readonly UIMessage[], session = chat.session): string {
  return accept(chat, { session, input: { kind: "messages", messages, joins: "now" } }).id;
}

/** Code wants the last answer to go on. @returns the turn's id */
export function continueLast(chat: ChatType): string | undefined {
  return acceptMore(chat, { session: chat.session })?.id;
}

/** What a turn that runs step by step does before its next model call. @returns the messages that it took. */
export function boundary(chat: ChatType, step = 1): string[] {
  const active = chat.running;
  if (active === undefined) throw new Error("Nothing runs.");
  const receipt = { turnId: active.row.id, step, callId: `call-${step}` };
  const steers = waitingSteers(chat, active);
  const taken: string[] = [];
  chat.commit(() => {
    for (const chunk of takeSteers(chat, active, receipt)) {
      active.take({ chunk });
      if (chunk.type === "steering-message") taken.push(chunk.id);
    }
    active.log.flush("sync");
  });
  closeSteers(
    chat,
    steers.map(({ turn }) => turn),
  );
  return taken;
}
