import { type Access, type KeyScope, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { Principal } from "./principal.ts";

export interface AccessOptions {
  /** Whether the operation changes nothing. */
  readonly readOnly: boolean;
  /** The operation's sandbox, if it has one. */
  readonly sandbox?: { readonly id: SandboxId; readonly tenant: string } | undefined;
}

/** Throws unless the principal may perform the operation. For a sandbox of another tenant it throws the error of an unknown id. */
export function requireAccess(principal: Principal, access: Access, options: AccessOptions): void {
  if (access === "anyone" || isAdmin(principal)) return;
  const { readOnly, sandbox } = options;
  if (sandbox !== undefined && !canSee(principal, sandbox)) throw noSuchSandbox(sandbox.id);
  if (principal.kind === "sandbox") {
    if (access === "sandbox") return;
    throw denied("a sandbox token is valid for its own sandbox only", access);
  }
  const accepted = acceptedScopes(access, readOnly);
  if (principal.scopes.some((scope) => accepted.includes(scope))) return;
  throw denied(`the key ${principal.keyId} has only the scopes ${principal.scopes.join(", ")}`, accepted.join(" or "));
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

function acceptedScopes(access: Exclude<Access, "anyone">, readOnly: boolean): readonly KeyScope[] {
  if (access === "admin") return ["admin"];
  if (access === "metrics") return ["metrics", "admin"];
  return readOnly ? ["read", "sandboxes", "admin"] : ["sandboxes", "admin"];
}

function denied(why: string, needed: string): SandboxError {
  return new SandboxError("missing_scope", {
    message: `permission denied: ${why}`,
    hint: `use a key with the scope ${needed === "sandbox" ? "sandboxes" : needed}`,
    details: { needed },
  });
}
