import { alarmCases } from "./conformance/alarm.ts";
import { type BenchCases, type ConformanceHost, runCase } from "./conformance/bench.ts";
import { blobCases } from "./conformance/blobs.ts";
import { durabilityCases } from "./conformance/durability.ts";
import { isolationCases } from "./conformance/isolation.ts";
import { lifeCases } from "./conformance/life.ts";
import { createProbe, type ConformanceProbe } from "./conformance/probe.ts";
import { socketCases } from "./conformance/sockets.ts";
import { sqlCases } from "./conformance/sql.ts";
import { txCases } from "./conformance/tx.ts";

/** One promise of the port, to be handed to any test runner. `run` rejects, saying what was expected, if it is broken. */
export interface ConformanceCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** Which parts a host leaves out on purpose. A suite that is not run is not passed: say so where you say what works. */
export interface ConformanceOptions {
  /** `false` for a host without sockets. */
  readonly sockets?: boolean;
}

const withoutSockets: BenchCases = {
  ...sqlCases,
  ...txCases,
  ...durabilityCases,
  ...isolationCases,
  ...blobCases,
  ...alarmCases,
  ...lifeCases,
};
const all: BenchCases = { ...withoutSockets, ...socketCases };

/** The agent that the cases act in. A host that runs elsewhere, such as a Worker, registers it there. */
export const conformanceProbe: ConformanceProbe = createProbe(all);

/**
 * What every implementation of `AgentHost` must do, as cases for any test runner:
 *
 *     test.for(hostConformance(open))("$name", ({ run }) => run());
 *
 * `open` is called once per case. It starts a host on storage of its own that runs `probe.Agent` under the name
 * `probe.className`. Whatever a case does with the port it does inside of that agent, reached by `call`; so the host may be in
 * another process, and is killed and started again between the halves of a case.
 */
export function hostConformance(
  open: (probe: ConformanceProbe) => Promise<ConformanceHost>,
  options: ConformanceOptions = {},
): ConformanceCase[] {
  const cases = options.sockets === false ? withoutSockets : all;
  return Object.entries(cases).map(([name, one]) => ({
    name,
    run: () => runCase(name, one, () => open(conformanceProbe)),
  }));
}
