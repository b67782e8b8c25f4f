// A host that stays until it is killed.
import { Agent, type AgentEnv } from "perdure";
import { createHost } from "perdure/node";
import { onCommand, programDir, report } from "perdure/testing";

class Note extends Agent<AgentEnv, { text: string }> {
  write(text: string): void {
    this.setState({ text });
  }
}

const host = createHost({ agents: { Note }, dir: programDir() });
await host.getAgentByName(Note, "a").write(`from ${process.pid}`);
report({ type: "open", pid: process.pid });
onCommand((command) => {
  setTimeout(() => void host.stop().then(() => process.exit(0)), command === "stop later" ? 200 : 0);
});
