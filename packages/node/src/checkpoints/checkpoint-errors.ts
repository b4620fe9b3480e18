import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export function noCheckpoints({ id, provider }: SandboxRecord): SandboxError {
  return new SandboxError("provider_lacks_capability", {
    message: `sandbox ${id} cannot have checkpoints: provider ${provider} does not support them`,
    hint: "use provider gvisor",
    details: { provider, capability: "checkpoint" },
  });
}

export function noCheckpoint(id: SandboxId): SandboxError {
  return new SandboxError("no_checkpoint", { message: `sandbox ${id} cannot be restored: it has no checkpoint` });
}

export function checkpointInUse(id: SandboxId, checkpoint: string): SandboxError {
  return new SandboxError("checkpoint_in_use", {
    message: `checkpoint ${checkpoint} was not deleted: sandbox ${id} is not running, and this checkpoint is its only copy`,
  });
}

export function cannotResume({ id, state }: SandboxRecord): SandboxError {
  return new SandboxError("invalid_state", {
    message: `sandbox ${id} is ${state}; only a paused sandbox can be resumed`,
    hint: "check the sandbox's state and failure",
    details: { expected: "paused", actual: state },
  });
}

export function hasMoved(id: SandboxId): SandboxError {
  return new SandboxError("sandbox_moved", {
    message: `sandbox ${id} has moved to another node during the request`,
    details: { id },
  });
}
