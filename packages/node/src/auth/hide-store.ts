import { SandboxError } from "@sandpiper/core";
import { isAdmin } from "./access.ts";
import type { Principal } from "./principal.ts";

const HIDDEN = new Set(["object_damaged", "object_forged", "object_replayed"]);

/** Only admins see which object of the store is bad and where the store is. The node's log has it under the request's id. */
export function hideStore(error: SandboxError, principal: Principal | undefined): SandboxError {
  if (!HIDDEN.has(error.reason) || (principal !== undefined && isAdmin(principal))) return error;
  const { code, reason } = error;
  return SandboxError.fromFields({
    code,
    reason,
    message: "an object in the store that this request uses is damaged, or no node of the cluster wrote it",
    hint: "ask the node's operator, who finds the object in the node's log under the id of this request",
    details: {},
  });
}
