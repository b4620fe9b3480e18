import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";

/** The default network: it reaches nothing, not even the engine's machine. */
export const NO_NETWORK = "none";

/** The network namespace of the engine's machine; no setting can allow it. */
const HOST_NETWORK = "host";

export interface NetworkPolicy {
  /** Allowed besides `none`. */
  readonly networks: readonly string[];
}

export function networkOf({ container }: InstanceSpec): string {
  return container?.network ?? NO_NETWORK;
}

/** Rejects a network that is not allowed or does not exist. */
export async function requireNetwork(engine: Engine, spec: InstanceSpec, { networks }: NetworkPolicy): Promise<void> {
  const network = networkOf(spec);
  if (network === NO_NETWORK) return;
  const allowed = [NO_NETWORK, ...networks.filter((name) => name !== HOST_NETWORK)];
  if (!allowed.includes(network)) {
    throw new SandboxError("network_not_allowed", {
      message: `sandbox ${spec.id} may not join network ${network}; allowed: ${allowed.join(", ")}`,
      hint: `omit the network, or allow it: set docker.networks to ${JSON.stringify([...networks, network])} in the configuration of the node, or the networks option of the docker provider`,
      details: { network, allowed },
    });
  }
  // Podman accepts this name for its default network, which has another name.
  if (engine.info.isPodman && network === "bridge") return;
  const found = await engine.find(`find network ${network}`, (docker) => docker.getNetwork(network).inspect());
  if (found !== undefined) return;
  throw new SandboxError("no_such_network", {
    message: `sandbox ${spec.id} cannot join network ${network}: it does not exist on the engine`,
    hint: `create it with \`docker network create ${network}\`, or use another`,
    details: { network },
  });
}
