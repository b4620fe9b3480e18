import type { SessionStatus } from "@sandpiper/protocol";
import type { SandboxState } from "./sandbox-state.ts";

/** Names that other interfaces use for the same states. */
export interface StateNames {
  /** The three states of the first sandbox managers; undefined where they have none. */
  readonly lifecycle: "Creating" | "Ready" | "Destroyed" | undefined;
  /** What container-style providers report. */
  readonly container: "created" | "running" | "stopped" | "failed" | "removed";
  /** The `status` of a WebSocket's `status_update` event; a failure while creating is SANDBOX_CREATION_ERROR instead. */
  readonly status: SessionStatus | undefined;
}

/** One row per state; docs/states.md shows the same table. */
export const stateNames: Readonly<Record<SandboxState, StateNames>> = {
  creating: { lifecycle: "Creating", container: "created", status: "SANDBOX_CREATING" },
  ready: { lifecycle: "Ready", container: "running", status: "SANDBOX_RUNNING" },
  paused: { lifecycle: undefined, container: "stopped", status: undefined },
  checkpointing: { lifecycle: undefined, container: "running", status: "SANDBOX_CHECKPOINTING" },
  stopped: { lifecycle: undefined, container: "stopped", status: "SANDBOX_CHECKPOINTED" },
  restoring: { lifecycle: "Creating", container: "created", status: "SANDBOX_RESTORING" },
  failed: { lifecycle: "Destroyed", container: "failed", status: "SANDBOX_EXECUTION_ERROR" },
  destroyed: { lifecycle: "Destroyed", container: "removed", status: "SANDBOX_DELETED" },
};
