import type { KeyScope, SandboxId } from "@sandpiper/protocol";

/** An authenticated caller: the holder of a key, or of the token of one sandbox. */
export type Principal =
  | {
      readonly kind: "key";
      readonly keyId: string;
      readonly tenant: string;
      readonly scopes: readonly KeyScope[];
    }
  | {
      readonly kind: "sandbox";
      readonly sandboxId: SandboxId;
      /** The key that created the sandbox; it pays for what the token's holder uses. */
      readonly keyId: string;
      readonly tenant: string;
    };

/** Finds the principal of a credential, which is the text after "Bearer ". */
export interface Authenticator {
  /** Throws `unauthenticated`. Takes the same time for every kind of invalid credential. */
  authenticate(credential: string | undefined): Principal;
  /** Like `authenticate`, but first looks up a key that this node does not know in the cluster's store. */
  admit(credential: string | undefined): Promise<Principal>;
}

/** The caller's name in the audit log. */
export function actorOf(principal: Principal): string {
  return principal.kind === "key" ? principal.keyId : `sandbox:${principal.sandboxId}`;
}
