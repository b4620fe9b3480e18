import { SandboxError } from "@sandpiper/core";

/** For a sandbox whose node does not respond. If that node is dead, another takes over when the lease expires. */
export function ownerUnreachable(url: string, cause?: unknown, leaseEndsInMs?: number): SandboxError {
  const retry = leaseEndsInMs === undefined ? "" : `; retry in ${Math.ceil(leaseEndsInMs / 1000)} s`;
  return new SandboxError("owner_unreachable", {
    message: `the sandbox's owner, the node at ${url}, is not responding${retry}`,
    details: { url, ...(leaseEndsInMs !== undefined && { retryAfterMs: Math.ceil(leaseEndsInMs) }) },
    cause,
  });
}

/** For what only the owner of a sandbox has, if that has no URL. Reading it there would need a handoff, and a reader moves nothing. */
export function ownerHasNoUrl(
  what: "events" | "network log",
  { id, node }: { id: string; node: string },
): SandboxError {
  return new SandboxError("owner_has_no_url", {
    message: `cannot read the ${what} of sandbox ${id} here: node ${node} owns it, and other nodes cannot reach that node`,
    details: { id, node },
  });
}

/** For a node that was named as the target of a move. */
export function nodeUnreachable(
  { id, url }: { readonly id: string; readonly url: string | null },
  why: string,
  cause?: unknown,
): SandboxError {
  return new SandboxError("target_node_unreachable", {
    message: `node ${id}${url === null ? "" : ` at ${url}`} cannot be reached: ${why}`,
    details: { node: id, ...(url !== null && { url }) },
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
