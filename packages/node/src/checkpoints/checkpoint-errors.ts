import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export function noCheckpoints({ id, provider }: SandboxRecord): SandboxError {
  return new SandboxError("unimplemented", {
    reason: "provider_lacks_capability",
    message: `sandbox ${id} has no checkpoints: provider ${provider} takes none`,
    hint: "use provider gvisor",
    details: { provider, capability: "checkpoint" },
  });
}

export function noCheckpoint(id: SandboxId): SandboxError {
  return new SandboxError("data_loss", {
    reason: "no_checkpoint",
    message: `sandbox ${id} cannot be restored: it has no checkpoint`,
    hint: "create a new one; a checkpoint policy would have kept it",
  });
}

export function onlyThere(id: SandboxId, checkpoint: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "checkpoint_in_use",
    message: `checkpoint ${checkpoint} was not deleted: sandbox ${id} does not run, and this is all there is of it`,
    hint: "resume the sandbox first, or destroy it",
  });
}

export function cannotResume({ id, state }: SandboxRecord): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "invalid_state",
    message: `sandbox ${id} is ${state}; only one that is paused can be resumed`,
    hint: "see its state and failure",
    details: { expected: "paused", actual: state },
  });
}
