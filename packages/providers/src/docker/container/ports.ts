import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import { NO_NETWORK, networkOf } from "./network.ts";

/** Publishes ports only to programs on the engine's machine. */
const LOOPBACK = "127.0.0.1";

/** The part of a container's inspection that holds its ports. */
export interface PortsInspect {
  readonly NetworkSettings: { readonly Ports?: Readonly<Record<string, readonly Docker.PortBinding[] | null>> | null };
}

/** Publishes each port at a host port of the engine's choice; requires a network. */
export function publishedPorts(spec: InstanceSpec) {
  const ports = spec.container?.ports ?? [];
  if (ports.length > 0 && networkOf(spec) === NO_NETWORK) {
    throw new SandboxError("ports_need_network", {
      message: `cannot publish ports ${ports.join(", ")} of sandbox ${spec.id}: it has no network`,
      hint: 'set container.network, for example to "bridge", or publish no ports',
    });
  }
  const keys = ports.map((port) => `${port}/tcp`);
  return {
    ExposedPorts: Object.fromEntries(keys.map((key) => [key, {}])),
    PortBindings: Object.fromEntries(keys.map((key) => [key, [{ HostIp: LOOPBACK, HostPort: "" }]])),
  };
}

/** The addresses of published ports, by port in the container; a stopped container has none. */
export function addressesOf({ NetworkSettings }: PortsInspect, engineUrl: URL): Readonly<Record<string, string>> {
  const published = Object.entries(NetworkSettings.Ports ?? {}).flatMap(([key, bindings]) => {
    const [binding] = bindings ?? [];
    const [port, protocol] = key.split("/");
    if (binding === undefined || port === undefined || protocol !== "tcp") return [];
    // The loopback address of a remote engine is on its own machine, which the URL names.
    return [[port, `${engineUrl.hostname || binding.HostIp}:${binding.HostPort}`] as const];
  });
  return Object.fromEntries(published);
}
