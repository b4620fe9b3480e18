import { type Access, type KeyScope, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { Principal } from "./principal.ts";

export interface AccessOptions {
  /** Whether the operation changes nothing. */
  readonly readOnly: boolean;
  /** The sandbox it is about, where that is known. */
  readonly sandbox?: { readonly id: SandboxId; readonly tenant: string } | undefined;
}

/** Throws unless this operation is for this principal; what a sandbox of others is about is not told. */
export function requireAccess(principal: Principal, access: Access, options: AccessOptions): void {
  if (access === "anyone" || isAdmin(principal)) return;
  const { readOnly, sandbox } = options;
  if (sandbox !== undefined && !canSee(principal, sandbox)) throw noSuchSandbox(sandbox.id);
  if (principal.kind === "sandbox") {
    if (access === "sandbox") return;
    throw denied("a sandbox's token opens that sandbox and nothing else", access);
  }
  const enough = sufficientScopes(access, readOnly);
  if (principal.scopes.some((scope) => enough.includes(scope))) return;
  throw denied(`the key ${principal.keyId} has only the scopes ${principal.scopes.join(", ")}`, enough.join(" or "));
}

export function mayAccess(principal: Principal, access: Access, options: AccessOptions): boolean {
  try {
    requireAccess(principal, access, options);
    return true;
  } catch {
    return false;
  }
}

export function isAdmin(principal: Principal): boolean {
  return principal.kind === "key" && principal.scopes.includes("admin");
}

function canSee(principal: Principal, { id, tenant }: { readonly id: SandboxId; readonly tenant: string }): boolean {
  return principal.kind === "sandbox" ? principal.sandboxId === id : principal.tenant === tenant;
}

function sufficientScopes(access: Exclude<Access, "anyone">, readOnly: boolean): readonly KeyScope[] {
  if (access === "admin") return ["admin"];
  return readOnly ? ["read", "sandboxes", "admin"] : ["sandboxes", "admin"];
}

function denied(why: string, needed: string): SandboxError {
  return new SandboxError("permission_denied", {
    reason: "missing_scope",
    message: `this was not done: ${why}`,
    hint: `use a key with the scope ${needed === "sandbox" ? "sandboxes" : needed}`,
    details: { needed },
  });
}
