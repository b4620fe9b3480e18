import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";

/** The network of a sandbox that asks for none: not even the engine's machine can be reached. */
export const NO_NETWORK = "none";

/** Joins the namespace of the engine's machine, so no list of allowed networks can allow it. */
const HOST_NETWORK = "host";

export interface NetworkPolicy {
  /** Beside none. */
  readonly networks: readonly string[];
}

export function networkOf({ container }: InstanceSpec): string {
  return container?.network ?? NO_NETWORK;
}

/** Refuses a network that is not allowed or not there, before anything is made for the sandbox. */
export async function requireNetwork(engine: Engine, spec: InstanceSpec, { networks }: NetworkPolicy): Promise<void> {
  const network = networkOf(spec);
  if (network === NO_NETWORK) return;
  const allowed = [NO_NETWORK, ...networks.filter((name) => name !== HOST_NETWORK)];
  if (!allowed.includes(network)) throw notAllowed(spec, network, allowed);
  // Podman takes the name for its default network, which is called otherwise there.
  if (engine.info.isPodman && network === "bridge") return;
  await engine
    .call(`find network ${network}`, (docker) => docker.getNetwork(network).inspect())
    .catch((error: unknown) => {
      throw error instanceof SandboxError && error.code === "not_found" ? unknownNetwork(spec, network, error) : error;
    });
}

function notAllowed({ id }: InstanceSpec, network: string, allowed: readonly string[]): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "network_not_allowed",
    message: `sandbox ${id} cannot join network ${network}; allowed are ${allowed.join(", ")}`,
    hint: "ask for one of these; whoever runs this can allow others with the networks option of the docker provider",
    details: { network, allowed },
  });
}

function unknownNetwork({ id }: InstanceSpec, network: string, cause: unknown): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "no_such_network",
    message: `sandbox ${id} cannot join network ${network}: the engine has none of that name`,
    hint: `create it first (docker network create ${network}), or ask for another`,
    details: { network },
    cause,
  });
}
