import { FakeClock } from "@sandpiper/protocol/testing";
import type { Timing } from "../timing.ts";

/** Time that stands still until a test moves it, and randomness without surprises. */
export class ManualTiming extends FakeClock implements Timing {
  random(): number {
    return 0.5;
  }
}
