import type { InstanceExit } from "../provider.ts";
import { SandboxError } from "../sandbox-error.ts";

/** What everybody who waited for an instance gets when it has ended. */
export function exitError(label: string, exit: InstanceExit): SandboxError {
  switch (exit.reason) {
    case "out_of_memory":
      return new SandboxError("resource_exhausted", {
        reason: "out_of_memory",
        message: `${label} was killed because it used more memory than it may: ${exit.message}`,
        hint: "create it again with a larger memoryMib",
      });
    case "crashed":
      return new SandboxError("unavailable", {
        reason: "instance_crashed",
        message: `${label} has crashed: ${exit.message}`,
        hint: "create a new sandbox",
      });
    case "checkpointed":
      return new SandboxError("unavailable", {
        reason: "sandbox_stopped",
        message: `${label} was checkpointed and stopped`,
        hint: "resume it, or ask again: it may be running elsewhere by now",
      });
    case "destroyed":
      return new SandboxError("gone", {
        reason: "sandbox_destroyed",
        message: `${label} was destroyed: ${exit.message}`,
        hint: "create a new sandbox",
      });
  }
}
