import { SandboxError } from "@sandpiper/protocol";

export function invalidTarget(target: number): SandboxError {
  return new SandboxError("invalid_target", {
    message: `the pool's target was not set: ${target} is not a number of instances`,
    details: { target },
  });
}

export function poolClosed(): SandboxError {
  return new SandboxError("pool_closed", { message: "nothing was booted: the warm pool has been closed" });
}

export function notWanted(): SandboxError {
  return new SandboxError("pool_lowered", { message: "the boot was ended: the warm pool needs the instance no more" });
}
