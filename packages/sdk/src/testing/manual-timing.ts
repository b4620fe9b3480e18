import { FakeClock } from "@sandpiper/protocol/testing";
import type { Timing } from "../timing.ts";

/** Time that stands still until a test advances it, and fixed random numbers. */
export class ManualTiming extends FakeClock implements Timing {
  random(): number {
    return 0.5;
  }
}
