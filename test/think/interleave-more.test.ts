import { interleavings } from "./interleave-suite.ts";

/* The other half of the runs of interleave.test.ts. */
interleavings(1);
