import { SandboxError } from "@sandpiper/core";

/** For a sandbox whose node does not respond. If that node is dead, another takes over when the lease expires. */
export function ownerUnreachable(url: string, cause?: unknown): SandboxError {
  return new SandboxError("owner_unreachable", {
    message: `the sandbox's node at ${url} does not respond`,
    details: { url },
    cause,
  });
}

/** For a node that was named as the target of a move. */
export function nodeUnreachable({ id, url }: { id: string; url: string }, why: string, cause?: unknown): SandboxError {
  return new SandboxError("target_node_unreachable", {
    message: `node ${id} at ${url} cannot be reached: ${why}`,
    details: { node: id, url },
    cause,
  });
}

/** For a request that another node forwarded here just when the sandbox moved away. It had no effect. */
export function movedOn(id: string): SandboxError {
  return new SandboxError("sandbox_moved", {
    message: `sandbox ${id} has just moved to another node`,
    hint: "retry",
    details: { id },
  });
}
