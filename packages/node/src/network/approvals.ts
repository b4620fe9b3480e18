import type { FlowOwner } from "./flow-sink.ts";

/** A connection that no rule is about, in a sandbox whose policy asks. */
export interface ApprovalRequest extends FlowOwner {
  /** Null if the sandbox connected to an address. */
  readonly name: string | null;
  /** Null if it connected to a name. */
  readonly address: string | null;
  readonly port: number;
  readonly pid: number | null;
  readonly program: string | null;
}

/** Asks someone whether a connection is allowed. */
export interface Approvals {
  /**
   * Called for each such connection, also if an earlier one to the same host was decided. Resolves with a denial when nobody
   * answers in time. Aborted when the connection ends or a changed policy decides.
   */
  decide(request: ApprovalRequest, signal: AbortSignal): Promise<"allow" | "deny">;
}

/** For nodes where nobody can be asked. */
export const denyAll: Approvals = { decide: () => Promise.resolve("deny") };
