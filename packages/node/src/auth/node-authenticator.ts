import { SandboxError } from "@sandpiper/protocol";
import type { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import type { KeyVerifier } from "./new-key.ts";
import type { Authenticator, Principal } from "./principal.ts";
import type { SandboxTokens } from "./sandbox-tokens.ts";
import { tokenHolder } from "./token-holder.ts";

export interface NodeAuthenticatorOptions {
  readonly keys: KeyVerifier;
  readonly tokens: SandboxTokens;
  readonly records: Pick<SqliteSandboxRecords, "get">;
  /** Undefined on a standalone node. In a cluster, a sandbox without a record here may be on another node. */
  readonly cluster?: { learn(credential: string | undefined): Promise<void> } | undefined;
}

/** Authenticates API keys and sandbox tokens. */
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

  async admit(credential: string | undefined): Promise<Principal> {
    await this.#options.cluster?.learn(credential);
    return this.authenticate(credential);
  }

  #key(text: string): Principal | undefined {
    const key = this.#options.keys.verify(text);
    if (key === undefined) return undefined;
    const { id: keyId, tenant, scopes } = key;
    return { kind: "key", keyId, tenant, scopes };
  }

  #sandbox(token: string): Principal | undefined {
    const { tokens, records, cluster } = this.#options;
    const sandboxId = tokens.verify(token);
    if (sandboxId === undefined) return undefined;
    const record = records.get(sandboxId);
    if (record === undefined) return cluster ? tokenHolder(sandboxId, records) : undefined;
    const { keyId, tenant, state } = record;
    return state === "destroyed" ? undefined : { kind: "sandbox", sandboxId, keyId, tenant };
  }
}

const hint = "send the header Authorization: Bearer <key>; the node's first key is in the file api-key in its home";

function noCredential(): SandboxError {
  return new SandboxError("no_credential", { message: "the request has no credential", hint });
}

function badCredential(): SandboxError {
  return new SandboxError("bad_credential", {
    message: "the credential is not valid: it is unknown, expired or revoked",
    hint,
  });
}
