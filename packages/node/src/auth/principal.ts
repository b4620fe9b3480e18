import type { KeyScope, Quota, SandboxId } from "@sandpiper/protocol";

/** Who asks: the holder of a key, or of the token of one sandbox. */
export type Principal =
  | {
      readonly kind: "key";
      readonly keyId: string;
      readonly tenant: string;
      readonly scopes: readonly KeyScope[];
      readonly quota: Quota;
    }
  | { readonly kind: "sandbox"; readonly sandboxId: SandboxId; readonly tenant: string };

/** Finds out who asks. */
export interface Authenticator {
  /** `credential` is what stands after "Bearer "; throws `unauthenticated`. Takes the same time whatever is wrong with it. */
  authenticate(credential: string | undefined): Principal;
}

/** The name under which the audit log keeps somebody. */
export function actorOf(principal: Principal): string {
  return principal.kind === "key" ? principal.keyId : `sandbox:${principal.sandboxId}`;
}
