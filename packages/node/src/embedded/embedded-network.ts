import { type Sandbox, systemClock } from "@sandpiper/core";
import { completeNetwork, type NetworkBody, networkBodySchema, SandboxError } from "@sandpiper/protocol";
import { z } from "zod";
import { networkSettings } from "../config/network-settings.ts";
import { type ApprovalRequest, denyAll } from "../network/approvals.ts";
import { configuredBundles, createNetworks } from "../network/create-networks.ts";
import { noFlowSink } from "../network/flow-sink.ts";

/** The network of a sandbox without a server. */
export interface EmbeddedNetworkOptions {
  /** Which hosts it reaches; "none" by default. */
  readonly network?: NetworkBody | undefined;
  /** What the operator of a node configures: networks outside the public internet, DNS servers, bundles of hosts. */
  readonly networkSettings?:
    | Pick<NonNullable<z.input<typeof networkSettings>>, "allowedCidrs" | "resolvers" | "bundles">
    | undefined;
  /** Decides on connections that no rule is about, if the network asks. Without it, they are denied. */
  readonly onNetworkRequest?: ((request: EmbeddedNetworkRequest) => Promise<"allow" | "deny">) | undefined;
}

export type EmbeddedNetworkRequest = Omit<ApprovalRequest, "tenant">;

/** Checks the options before the sandbox is created. Serves the network of a sandbox until it ends. */
export function embeddedNetwork(options: EmbeddedNetworkOptions): ((sandbox: Sandbox) => void) | undefined {
  const { network: given, networkSettings: settings = {}, onNetworkRequest } = options;
  if (given === undefined) return undefined;
  const network = parsed("network", networkBodySchema, given);
  const config = { network: parsed("networkSettings", networkSettings, settings) };
  requireBundles(network, Object.keys(configuredBundles(config)));
  const networks = createNetworks(config, {
    clock: systemClock,
    sink: noFlowSink,
    approvals:
      onNetworkRequest === undefined ? denyAll : { decide: ({ tenant: _, ...request }) => onNetworkRequest(request) },
    ownPorts: () => [],
    // The connections of the sandbox then fail, which its programs report.
    onError: () => {},
  });
  return (sandbox) => {
    const served = networks.serve(sandbox, "default", completeNetwork(network));
    sandbox.closed.then(() => served[Symbol.dispose]());
  };
}

function requireBundles(network: NetworkBody, known: readonly string[]): void {
  const rules = typeof network === "string" ? [] : (network.rules ?? []);
  for (const rule of rules) {
    const target = "allow" in rule ? rule.allow : rule.deny;
    if (!target.startsWith("@") || known.includes(target.slice(1))) continue;
    throw new SandboxError("unknown_bundle", {
      message: `there is no bundle ${target}`,
      hint: `use one of ${known.map((name) => `@${name}`).join(", ")}, or host names`,
      details: { bundle: target.slice(1), known: [...known] },
    });
  }
}

function parsed<Output>(field: string, schema: z.ZodType<Output>, value: unknown): Output {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new SandboxError("invalid_config", {
    message: `${field}: ${z.prettifyError(result.error)}`,
    details: { field },
  });
}
