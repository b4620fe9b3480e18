import { SandboxError } from "@sandpiper/core";

/** What to do differs from what it is with an engine that has a network. */
export function explainMissingImage(thrown: unknown): unknown {
  if (!(thrown instanceof SandboxError) || thrown.reason !== "registry_unreachable") return thrown;
  return new SandboxError("failed_precondition", {
    reason: "image_not_in_machine",
    message: `${thrown.message}; the machines of projects have no network`,
    hint: "write the image to a file with `docker save`, and name that in vmDocker.images",
    cause: thrown,
  });
}
