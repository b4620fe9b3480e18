import type { ChaosBed } from "../chaos-bed.ts";
import type { ChaosSandbox } from "../chaos-sandbox.ts";
import type { Random } from "../random.ts";

export interface FaultContext {
  readonly bed: ChaosBed;
  /** Belongs to this fault alone: what else happens does not change its choices. */
  readonly random: Random;
  /** A sandbox that clients use. */
  readonly sandbox: ChaosSandbox;
  readonly log: (line: string) => void;
}

export interface Fault {
  /** Faults of one area do not happen at the same time, because they could undo each other. */
  readonly area: "node" | "instance" | "store" | "disk" | "network" | "object" | "clock";
  readonly kind: string;
  /** Injects the fault for a while and repairs it. */
  readonly inject: (context: FaultContext) => Promise<void>;
}
