import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import type { SandboxId, SecretUse } from "@sandpiper/protocol";
import type { AllowedFlow, Dial, FlowOutcome, Interceptor } from "../network/interceptor.ts";
import { admitRequests, type RequestRecord } from "./admit-requests.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import type { UsableSecret } from "./inject.ts";
import { joinStreams } from "./join-streams.ts";
import { relayFlow } from "./relay-flow.ts";
import { coversHost, type Destination } from "./secret-host.ts";
import type { SecretRecord } from "./secret-record.ts";
import type { SecretService } from "./secret-service.ts";

export interface SecretInterceptorOptions {
  readonly secrets: Pick<SecretService, "of">;
  readonly authority: Pick<CertificateAuthority, "contextFor">;
  /** The authorities that vouch for servers; created at first use, because that takes a while. */
  readonly trust: () => SecureContext;
  /** What a sandbox uses now; empty if it does not run here. */
  readonly usesOf: (sandbox: SandboxId) => readonly SecretUse[];
}

/** Injects secrets into the requests that sandboxes send to the hosts of these secrets. */
export class SecretInterceptor implements Interceptor {
  readonly #options: SecretInterceptorOptions;

  constructor(options: SecretInterceptorOptions) {
    this.#options = options;
  }

  intercepts({ sandboxId, tenant, name, port }: AllowedFlow): boolean {
    const uses = name === null ? [] : this.#options.usesOf(sandboxId);
    if (name === null || uses.length === 0) return false;
    const { current } = this.#options.secrets.of(tenant);
    // Without a fresh copy of the secrets, `handle` finds out.
    return current === undefined || isBound(current, uses, { name, port });
  }

  async handle({ sandboxId, tenant, name, port }: AllowedFlow, guest: Duplex, dial: Dial): Promise<FlowOutcome> {
    const { secrets, authority, usesOf, trust } = this.#options;
    const destination = { name: name ?? "", port };
    const read = () => secrets.of(tenant).read();
    if (!isBound(await read(), usesOf(sandboxId), destination)) {
      const upstream = await dial();
      await joinStreams(guest, upstream);
      return { reason: null };
    }
    const usable = async (isSecure: boolean) =>
      usableSecrets(await read(), usesOf(sandboxId), { ...destination, isSecure });
    const requests: RequestRecord[] = [];
    const fault = await relayFlow(guest, {
      ...destination,
      dial,
      admit: ({ isSecure }) => admitRequests({ ...destination, secrets: () => usable(isSecure), requests }),
      allowsInsecure: (await usable(false)).length > 0,
      contextFor: (host) => authority.contextFor(host),
      trust: trust(),
    });
    if (fault === "tls_name_mismatch" || fault === "connect_failed") return { reason: fault, requests };
    return { reason: fault === undefined ? null : "intercept_failed", requests };
  }
}

function isBound(secrets: readonly SecretRecord[], uses: readonly SecretUse[], destination: Destination): boolean {
  return [true, false].some((isSecure) => usableSecrets(secrets, uses, { ...destination, isSecure }).length > 0);
}

function usableSecrets(
  secrets: readonly SecretRecord[],
  uses: readonly SecretUse[],
  destination: Destination & { readonly isSecure: boolean },
): readonly UsableSecret[] {
  return uses.flatMap(({ name, placeholder }) => {
    const secret = secrets.find((each) => each.name === name);
    if (secret === undefined) return [];
    const { hosts, value, inject, allowInsecure } = secret;
    const isUsable = destination.isSecure || allowInsecure;
    return isUsable && hosts.some((host) => coversHost(host, destination, destination))
      ? [{ placeholder, value, inject }]
      : [];
  });
}
