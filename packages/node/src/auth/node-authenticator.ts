import { SandboxError } from "@sandpiper/protocol";
import type { SandboxRecords } from "../records/sandbox-record.ts";
import type { KeyService } from "./key-service.ts";
import type { Authenticator, Principal } from "./principal.ts";
import type { SandboxTokens } from "./sandbox-tokens.ts";

export interface NodeAuthenticatorOptions {
  readonly keys: KeyService;
  readonly tokens: SandboxTokens;
  readonly records: Pick<SandboxRecords, "get">;
}

/** Knows the node's keys and the tokens of its sandboxes. */
export class NodeAuthenticator implements Authenticator {
  readonly #options: NodeAuthenticatorOptions;

  constructor(options: NodeAuthenticatorOptions) {
    this.#options = options;
  }

  authenticate(credential: string | undefined): Principal {
    if (credential === undefined || credential === "") throw noCredential();
    const principal = credential.startsWith("spt_") ? this.#sandbox(credential) : this.#key(credential);
    if (principal === undefined) throw badCredential();
    return principal;
  }

  #key(text: string): Principal | undefined {
    const key = this.#options.keys.verify(text);
    if (key === undefined) return undefined;
    const { id: keyId, tenant, scopes, quota } = key;
    return { kind: "key", keyId, tenant, scopes, quota };
  }

  #sandbox(token: string): Principal | undefined {
    const sandboxId = this.#options.tokens.verify(token);
    const record = sandboxId && this.#options.records.get(sandboxId);
    if (record === undefined || record.state === "destroyed") return undefined;
    return { kind: "sandbox", sandboxId: record.id, tenant: record.tenant };
  }
}

const hint = "send the header Authorization: Bearer <key>; the node's first key stands in api-key in its directory";

function noCredential(): SandboxError {
  return new SandboxError("unauthenticated", {
    reason: "no_credential",
    message: "the request has no credential",
    hint,
  });
}

function badCredential(): SandboxError {
  return new SandboxError("unauthenticated", {
    reason: "bad_credential",
    message: "the credential is not valid: it is unknown, expired or revoked",
    hint,
  });
}
