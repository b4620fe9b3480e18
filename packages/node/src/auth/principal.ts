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

/** Finds the principal of a credential, which is the text after "Bearer ". */
export interface Authenticator {
  /** Throws `unauthenticated`. Takes the same time whatever is wrong with the credential. */
  authenticate(credential: string | undefined): Principal;
  /** As `authenticate`, but looks for a key that this node does not know in the cluster's store first. */
  admit(credential: string | undefined): Promise<Principal>;
}

/** The name under which the audit log keeps somebody. */
export function actorOf(principal: Principal): string {
  return principal.kind === "key" ? principal.keyId : `sandbox:${principal.sandboxId}`;
}
