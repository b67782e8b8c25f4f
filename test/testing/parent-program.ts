// Starts a program and reports its pid, for the test that kills this process and looks for the child.
import { programDir, report, startProgram } from "perdure/testing";

const child = startProgram(new URL("./job-program.ts", import.meta.url), { dir: programDir() });
await child.waitFor("ready");
report({ type: "started", pid: child.pid });
