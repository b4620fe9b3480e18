import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { NO_NETWORK, networkOf } from "./network.ts";

/** Of the engine's machine: what a sandbox serves is for those who are there already. */
const LOOPBACK = "127.0.0.1";

interface PortBinding {
  HostIp: string;
  HostPort: string;
}

/** Published ports in the engine's terms. */
export interface PublishedPorts {
  readonly ExposedPorts: Record<string, Record<string, never>>;
  readonly PortBindings: Record<string, PortBinding[]>;
}

/** What the engine says of a container's ports; only what is read here. */
export interface PortsInspect {
  readonly NetworkSettings: { readonly Ports?: Readonly<Record<string, readonly PortBinding[] | null>> | null };
}

/** Each port at one of the engine's own choice; needs a network through which it can be reached. */
export function publishedPorts(spec: InstanceSpec): PublishedPorts {
  const ports = spec.container?.ports ?? [];
  if (ports.length > 0 && networkOf(spec) === NO_NETWORK) {
    throw new SandboxError("invalid_argument", {
      reason: "ports_need_network",
      message: `ports ${ports.join(", ")} of sandbox ${spec.id} cannot be published: it has no network`,
      hint: 'name a network in container.network, for example "bridge", or publish no ports',
    });
  }
  const keys = ports.map((port) => `${port}/tcp`);
  return {
    ExposedPorts: Object.fromEntries(keys.map((key) => [key, {}])),
    PortBindings: Object.fromEntries(keys.map((key) => [key, [{ HostIp: LOOPBACK, HostPort: "" }]])),
  };
}

/**
 * Where published ports are reached, by port inside; a stopped container has none. `engineHost` is the name of an engine
 * elsewhere, whose loopback is not this machine's.
 */
export function addressesOf({ NetworkSettings }: PortsInspect, engineHost?: string): Readonly<Record<string, string>> {
  const published = Object.entries(NetworkSettings.Ports ?? {}).flatMap(([key, bindings]) => {
    const [binding] = bindings ?? [];
    const [port, protocol] = key.split("/");
    if (binding === undefined || port === undefined || protocol !== "tcp") return [];
    return [[port, `${engineHost ?? binding.HostIp}:${binding.HostPort}`] as const];
  });
  return Object.fromEntries(published);
}
