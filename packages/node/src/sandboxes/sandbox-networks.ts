import {
  completeNetwork,
  isNoNetwork,
  type NetworkBody,
  type NetworkPolicy,
  type NetworkRule,
  ruleText,
} from "@sandpiper/protocol";
import { requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { Networks } from "../network/networks.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { NetworkPolicies } from "./network-policies.ts";
import { requireRedirected } from "./new-sandbox.ts";
import type { Providers } from "./providers.ts";
import type { SandboxAccess } from "./sandbox-access.ts";
import { beingDestroyed, ended } from "./sandbox-errors.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";
import { saveRecord } from "./save-record.ts";

export interface SandboxNetworksOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly ownership: Ownership;
  readonly policies: NetworkPolicies;
  readonly providers: Pick<Providers, "byName">;
  readonly networks: Pick<Networks, "update">;
}

/** Reads and changes the networks of sandboxes for callers. */
export class SandboxNetworks {
  readonly #options: SandboxNetworksOptions;

  constructor(options: SandboxNetworksOptions) {
    this.#options = options;
  }

  get(principal: Principal, id: string): NetworkPolicy {
    return this.#options.access.find(principal, id, { readOnly: true }).network ?? completeNetwork("none");
  }

  /** Applies at once and ends connections that are no longer allowed. */
  set(principal: Principal, id: string, body: NetworkBody): Promise<NetworkPolicy> {
    return this.#change(principal, id, () => completeNetwork(body));
  }

  /** Puts a rule before all others, so that it decides. */
  prepend(principal: Principal, id: string, rule: NetworkRule): Promise<NetworkPolicy> {
    const text = ruleText(rule);
    return this.#change(principal, id, (policy) => {
      const others = policy.rules.filter((each) => ruleText(each) !== text);
      return { ...policy, rules: [rule, ...others] };
    });
  }

  async #change(
    principal: Principal,
    id: string,
    change: (policy: NetworkPolicy) => NetworkPolicy,
  ): Promise<NetworkPolicy> {
    const { registry, access, ownership, policies, networks, providers } = this.#options;
    requireAccess(principal, "sandboxes", { readOnly: false });
    const record = access.find(principal, id, { readOnly: false });
    if (record.endedAt !== null) throw ended(record);
    if (registry.isBeingDestroyed(record.id)) throw beingDestroyed(record);
    // Serialized, because a running checkpoint stores the record it started with.
    const changed = await registry.serialize(record.id, async () => {
      const before = access.find(principal, id, { readOnly: false }).network ?? completeNetwork("none");
      const network = policies.requireAllowed(principal.keyId, change(before));
      const provider = providers.byName.get(record.provider);
      if (provider !== undefined && !isNoNetwork(network)) requireRedirected("a network policy", provider, record);
      const after = registry.change(record.id, { network });
      networks.update(record.id, network);
      await saveRecord(ownership, after);
      return network;
    });
    registry.emit("sandbox.updated", record);
    return changed;
  }
}
