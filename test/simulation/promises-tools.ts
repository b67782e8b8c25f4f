// What tools and runs of children promise: nothing runs twice or unasked, and every run has the same end on both sides.
import { toolName, toolParts } from "../../src/message/types.ts";
import { asks, SAFE } from "../think/interleave-tools.ts";
import type { Facts } from "./facts.ts";
import type { Say } from "./promises.ts";
import type { World } from "./world.ts";

const RUN_ENDS = new Set(["completed", "error", "aborted", "interrupted"]);

export function toolPromises({ record, setup }: World, facts: Facts, all: ReadonlyMap<string, Facts>, say: Say): void {
  const { agent, messages } = facts;
  const isThink = !agent.startsWith("Chat");
  // Where the model calls itself give the tools no key, ids tell calls apart only if each is new.
  if (!isThink && setup.ids !== "new") return;
  const own = record.runs.filter((run) => run.agent === agent);
  const byKey = Map.groupBy(own, (run) => (isThink ? run.key : run.toolCallId));
  for (const [key, runs] of byKey) {
    const tool = runs[0]?.tool ?? "";
    const lives = new Set(runs.map(({ life }) => life)).size;
    if (runs.length > 1 && !(SAFE.has(tool) && isThink)) say(`${agent}: ${tool} ran ${runs.length} times for ${key}`);
    if (runs.length > lives && isThink && record.refused === 0)
      say(`${agent}: ${tool} ran ${runs.length} times for ${key} in ${lives} lives`);
  }
  for (const message of messages.values()) {
    for (const part of toolParts(message)) {
      const key = isThink ? `${message.id}:${part.toolCallId}` : part.toolCallId;
      const runs = byKey.get(key) ?? [];
      if (part.state === "output-denied" && runs.length > 0) say(`${agent}: ${key} was denied and ran`);
      if (runs.length === 0 || !asks(toolName(part), part.input)) continue;
      const said = record.decisions.filter(
        (one) => one.agent === agent && one.toolCallId === part.toolCallId && one.messageId === message.id,
      );
      const first = runs[0]?.order ?? 0;
      if (!said.some(({ approved, order }) => approved && order < first))
        say(`${agent}: ${toolName(part)} ran for ${key}, and nobody had approved it`);
    }
  }
  runPromises(facts, all, say);
}

function runPromises({ agent, runsBelow }: Facts, all: ReadonlyMap<string, Facts>, say: Say): void {
  for (const { id, status, className = "", output } of runsBelow) {
    if (!RUN_ENDS.has(status)) say(`${agent}: the run ${id} is left ${status}`);
    const child = all.get(`${agent}/${className}/${id}`)?.run;
    if (status !== "completed") continue;
    if (child?.status !== "completed")
      say(`${agent}: the run ${id} is completed, for the child it is ${child?.status}`);
    if (child !== undefined && child.output !== output)
      say(`${agent}: the run ${id} gave ${output}, for the child it is ${child.output}`);
  }
}
