import type { Clock, SandboxError } from "@sandpiper/core";
import { DEFAULT_NETWORK_BUNDLES, type SandboxId } from "@sandpiper/protocol";
import type { NodeConfig } from "../config/node-config.ts";
import type { Approvals } from "./approvals.ts";
import type { Bundles } from "./compiled-policy.ts";
import type { FlowSink } from "./flow-sink.ts";
import { type Interceptor, noInterceptor } from "./interceptor.ts";
import { Networks } from "./networks.ts";
import { ReachableAddresses } from "./reachable-addresses.ts";
import { Resolver } from "./resolver.ts";

export interface CreateNetworksOptions {
  readonly clock: Clock;
  readonly sink: FlowSink;
  readonly approvals: Approvals;
  readonly interceptor?: Interceptor | undefined;
  /** Ports of this machine that sandboxes never reach. */
  readonly ownPorts: () => readonly number[];
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** The operator's bundles in place of, and besides, the usual ones. */
export function configuredBundles({ network }: Pick<NodeConfig, "network">): Bundles {
  return { ...DEFAULT_NETWORK_BUNDLES, ...network.bundles };
}

export function createNetworks(config: Pick<NodeConfig, "network">, options: CreateNetworksOptions): Networks {
  const { clock, sink, approvals, interceptor = noInterceptor, ownPorts, onError } = options;
  const { allowedCidrs, resolvers, maxConnections } = config.network;
  const reachable = new ReachableAddresses({ allowedCidrs, ownPorts, clock });
  const resolver = new Resolver({ servers: resolvers, clock, hasIpv6: () => reachable.hasIpv6 });
  const bundles = configuredBundles(config);
  return new Networks({
    parts: { clock, bundles, reachable, resolver, approvals, interceptor, sink },
    maxConnections,
    onError,
  });
}
