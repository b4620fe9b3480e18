import { SandboxError } from "../sandbox-error.ts";

export function invalidTarget(target: number): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_target",
    message: `the pool's target was not set: ${target} is not a number of instances`,
    hint: "give a whole number, 0 for none",
    details: { target },
  });
}

export function poolClosed(): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "pool_closed",
    message: "nothing was booted: the warm pool has been closed",
    hint: "the node is stopping; try again when it runs",
  });
}

export function notWanted(): SandboxError {
  return new SandboxError("canceled", {
    reason: "pool_lowered",
    message: "the boot was ended: the warm pool needs the instance no more",
  });
}
