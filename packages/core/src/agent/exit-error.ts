import { SandboxError } from "@sandpiper/protocol";
import type { InstanceExit } from "../provider.ts";

/** The error for operations on an ended instance. */
export function exitError(label: string, exit: InstanceExit): SandboxError {
  switch (exit.reason) {
    case "out_of_memory":
      return new SandboxError("out_of_memory", {
        message: `${label} has failed: it was killed because it exceeded its memory limit: ${exit.message}`,
        details: { state: "failed" },
      });
    case "crashed":
      return new SandboxError("instance_crashed", {
        message: `${label} has failed: it has crashed: ${exit.message}`,
        details: { state: "failed" },
      });
    case "checkpointed":
      return new SandboxError("sandbox_stopped", { message: `${label} was checkpointed and stopped` });
    case "stopped":
      return new SandboxError("sandbox_stopped", { message: `${label} was stopped: ${exit.message}` });
    case "destroyed":
      return new SandboxError("sandbox_destroyed", { message: `${label} was destroyed: ${exit.message}` });
  }
}
