import { runState, type StateOp } from "../messenger/kept-state.ts";
import { parts } from "../parts/part.ts";
import { Agent } from "./agent.ts";

/**
 * Holds what clients of networks keep, as a child of an agent with messengers, for apps that want more than one file for that.
 * Register the class and name it in `chatSdkMessenger()`; without it, the agent itself holds it.
 */
export class MessengerStateAgent extends Agent {
  /** Nobody outside has anything to do here: what it holds is between the agent and its networks. */
  override authorize(): boolean {
    return false;
  }

  /** What its parent asks. For the framework: it is not callable by clients. */
  keptState(messenger: string, op: StateOp): unknown {
    return runState(this[parts].host, messenger, op);
  }
}
