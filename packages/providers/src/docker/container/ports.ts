import { type ContainerOptions, type InstanceSpec, SandboxError } from "@sandpiper/core";
import { portKey } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { NO_NETWORK, networkOf } from "./network.ts";

/** By default, publishes ports only to programs on the engine's machine. */
const LOOPBACK = "127.0.0.1";

/** What callers may choose on the engine's machine; other ports get a number of the engine's choice on loopback. */
export interface PortPolicy {
  /** Numbers and ranges, such as `8080` and `9000-9100`. */
  readonly hostPorts: readonly string[];
  /** Besides 127.0.0.1. */
  readonly hostAddresses: readonly string[];
}

type PublishedPort = Exclude<NonNullable<ContainerOptions["ports"]>[number], number>;

/** The part of a container's inspection that holds its ports. */
export interface PortsInspect {
  readonly NetworkSettings: { readonly Ports?: Readonly<Record<string, readonly Docker.PortBinding[] | null>> | null };
}

/** Rejects ports and addresses that are not allowed, and ports of a sandbox without a network. */
export function requirePorts(spec: InstanceSpec, { hostPorts, hostAddresses }: PortPolicy): void {
  const ports = portsOf(spec);
  if (ports.length > 0 && networkOf(spec) === NO_NETWORK) {
    throw new SandboxError("ports_need_network", {
      message: `cannot publish ports ${ports.map(portKey).join(", ")} of sandbox ${spec.id}: it has no network`,
      hint: 'set container.network, for example to "bridge", or publish no ports',
    });
  }
  for (const port of ports) {
    const { host, address = LOOPBACK } = port;
    const what = `port ${portKey(port)} of sandbox ${spec.id}`;
    if (host !== undefined && !hostPorts.some((range) => isWithin(host, range))) {
      throw new SandboxError("host_port_not_allowed", {
        message: `${what} cannot have host port ${host}; allowed: ${hostPorts.join(", ") || "none"}`,
        hint: "omit `host`, so that the engine chooses a port; the operator allows ports with docker.hostPorts",
        details: { port: host, allowed: hostPorts },
      });
    }
    const allowed = [LOOPBACK, ...hostAddresses];
    if (!allowed.includes(address)) {
      throw new SandboxError("host_address_not_allowed", {
        message: `${what} cannot be published at ${address}; allowed: ${allowed.join(", ")}`,
        hint: "omit `address`, or use an allowed one; the operator allows addresses with docker.hostAddresses",
        details: { address, allowed },
      });
    }
  }
}

export function publishedPorts(spec: InstanceSpec) {
  const ports = portsOf(spec).map((port) => ({ ...port, key: `${port.container}/${port.protocol ?? "tcp"}` }));
  return {
    ExposedPorts: Object.fromEntries(ports.map(({ key }) => [key, {}])),
    PortBindings: Object.fromEntries(
      // Without a number, the engine chooses one.
      ports.map(({ key, host, address = LOOPBACK }) => [key, [{ HostIp: address, HostPort: `${host ?? ""}` }]]),
    ),
  };
}

/** The addresses of published ports, by port in the container; a stopped container has none. */
export function addressesOf({ NetworkSettings }: PortsInspect, engineUrl: URL): Readonly<Record<string, string>> {
  const published = Object.entries(NetworkSettings.Ports ?? {}).flatMap(([key, bindings]) => {
    const [binding] = bindings ?? [];
    if (binding === undefined) return [];
    // The addresses of a remote engine are on its own machine, which the URL names.
    const host = engineUrl.hostname || binding.HostIp;
    const shown = host?.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    return [[key.replace(/\/tcp$/, ""), `${shown}:${binding.HostPort}`] as const];
  });
  return Object.fromEntries(published);
}

/** Explains the engine's refusal to start a container whose host port is taken; other errors stay as they are. */
export function startError(spec: InstanceSpec, error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error;
  if (!/port is already allocated|address already in use|ports? are not available/i.test(error.message)) return error;
  const fixed = portsOf(spec).filter(({ host }) => host !== undefined);
  const taken = fixed.filter(({ host }) => new RegExp(`(?<!\\d)${host}(?!\\d)`).test(error.message));
  const [port] = taken.length > 0 ? taken : fixed;
  if (port?.host === undefined) return error;
  const { host, address = LOOPBACK, protocol = "tcp" } = port;
  return new SandboxError("host_port_in_use", {
    message: `cannot publish port ${portKey(port)} of sandbox ${spec.id}: ${protocol} port ${host} at ${address} of the engine's machine is in use`,
    hint: "use another host port, or omit it; `docker ps` shows which container has it",
    details: { port: host, protocol, address },
    cause: error,
  });
}

function portsOf({ container }: InstanceSpec): readonly PublishedPort[] {
  return (container?.ports ?? []).map((port) => (typeof port === "number" ? { container: port } : port));
}

function isWithin(port: number, range: string): boolean {
  const [first, last = first] = range.split("-").map(Number);
  return first !== undefined && last !== undefined && port >= first && port <= last;
}
