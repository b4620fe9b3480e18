import { SandboxError } from "@sandpiper/core";

/** An ordinary process cannot be saved or restored. */
export function noCheckpoints(what: string): SandboxError {
  return new SandboxError("provider_lacks_capability", {
    message: `${what}: the provider local has no checkpoints`,
    hint: "use the provider gvisor for sandboxes that can be saved, forked and moved",
  });
}
