import { alarmCases } from "./conformance/alarm.ts";
import { type BenchCases, type ConformanceHost, withBench } from "./conformance/bench.ts";
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

/**
 * What every implementation of `AgentHost` must do, as cases for any test runner:
 *
 *     test.for(hostConformance(open))("$name", ({ run }) => run());
 *
 * `open` is called once per case. It starts a host on storage of its own that runs `probe.Agent` under the name
 * `probe.className`; `probe.host(name)` is then the port that the host gave to that agent.
 */
export function hostConformance(
  open: (probe: ConformanceProbe) => Promise<ConformanceHost>,
  options: ConformanceOptions = {},
): ConformanceCase[] {
  const cases: BenchCases = {
    ...sqlCases,
    ...txCases,
    ...durabilityCases,
    ...isolationCases,
    ...blobCases,
    ...alarmCases,
    ...lifeCases,
    ...(options.sockets === false ? {} : socketCases),
  };
  return Object.entries(cases).map(([name, run]) => ({
    name,
    run() {
      const probe = createProbe();
      return withBench(probe, () => open(probe), run);
    },
  }));
}
