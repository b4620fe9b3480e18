import { SandboxError } from "@sandpiper/core";
import {
  completeNetwork,
  MAX_NETWORK_RULES,
  type NetworkBody,
  type NetworkPolicy,
  type NetworkRule,
  ruleText,
} from "@sandpiper/protocol";
import type { Bundles } from "../network/compiled-policy.ts";
import { isNetworkWithin } from "../network/network-within.ts";

export interface NetworkPoliciesOptions {
  readonly keys: { maxNetwork(keyId: string): NetworkPolicy | null };
  readonly bundles: Bundles;
  /** The network of a sandbox whose caller gives none. */
  readonly defaultNetwork: NetworkBody;
}

/** Completes the networks that callers ask for, and checks them against the limits of their keys. */
export class NetworkPolicies {
  readonly #options: NetworkPoliciesOptions;

  constructor(options: NetworkPoliciesOptions) {
    this.#options = options;
  }

  /** The network of a new sandbox of this key. */
  complete(keyId: string, body: NetworkBody | undefined): NetworkPolicy {
    if (body !== undefined) return this.requireAllowed(keyId, completeNetwork(body));
    const { keys, defaultNetwork, bundles } = this.#options;
    const policy = completeNetwork(defaultNetwork);
    const limit = keys.maxNetwork(keyId);
    // A key that may not have the node's default gets what it may have.
    return limit === null || isNetworkWithin(policy, limit, bundles) ? policy : limit;
  }

  /** Throws `invalid_argument` for an unknown bundle, and `permission_denied` for more than the key may have. */
  requireAllowed(keyId: string, policy: NetworkPolicy): NetworkPolicy {
    const { keys, bundles } = this.#options;
    if (policy.rules.length > MAX_NETWORK_RULES) throw tooManyRules();
    for (const rule of policy.rules) {
      const target = "allow" in rule ? rule.allow : rule.deny;
      if (target.startsWith("@") && !Object.hasOwn(bundles, target.slice(1))) throw unknownBundle(target, bundles);
    }
    const limit = keys.maxNetwork(keyId);
    if (limit !== null && !isNetworkWithin(policy, limit, bundles)) throw notAllowed(keyId, limit);
    return policy;
  }
}

function tooManyRules(): SandboxError {
  return new SandboxError("too_many_rules", {
    message: `a network has at most ${MAX_NETWORK_RULES} rules`,
    details: { maxRules: MAX_NETWORK_RULES },
  });
}

function unknownBundle(target: string, bundles: Bundles): SandboxError {
  const known = Object.keys(bundles);
  return new SandboxError("unknown_bundle", {
    message: `this node has no bundle ${target}`,
    hint: `use one of ${known.map((name) => `@${name}`).join(", ")}, or host names`,
    details: { bundle: target.slice(1), known },
  });
}

function notAllowed(keyId: string, limit: NetworkPolicy): SandboxError {
  const maxNetwork = networkText(limit);
  return new SandboxError("network_limit", {
    message: `the sandboxes of key ${keyId} may have at most this network: ${maxNetwork}`,
    details: { key: keyId, maxNetwork },
  });
}

const defaultText = { allow: "open", deny: "none", ask: "ask" } as const;

/** A policy for people, such as `allow=@pypi, otherwise ask`. */
function networkText({
  rules,
  default: otherwise,
}: {
  rules: readonly NetworkRule[];
  default: NetworkPolicy["default"];
}) {
  if (rules.length === 0) return defaultText[otherwise];
  const text = rules.map(ruleText).join(", ");
  return otherwise === "deny" ? text : `${text}, otherwise ${otherwise}`;
}
