import type { DockerHost } from "../host.ts";
import { addressesOf, type PortsInspect } from "./ports.ts";

/** Where a container's published ports are reached from here; a remote engine's loopback is on its own machine. */
export function reachableAddresses(
  { engine, paths }: DockerHost,
  found: PortsInspect,
): Readonly<Record<string, string>> {
  return addressesOf(found, paths.isRemote ? engine.endpoint.url.hostname : undefined);
}
