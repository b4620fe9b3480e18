import type { Server } from "node:http";
import type { Socket } from "node:net";
import { CallerAddresses, networkOf, plain } from "../http/caller-address.ts";

export interface ConnectionLimitsOptions {
  /** 0 for no limit. */
  readonly maxConnections: number;
  /** 0 for no limit. */
  readonly maxConnectionsPerAddress: number;
  readonly trustedProxies: readonly string[];
  /** Called for each refusal. */
  readonly onRefusal?: ((limit: string) => void) | undefined;
}

/** Closes new connections when there are too many, in total or from one address. */
export function limitConnections(server: Server, options: ConnectionLimitsOptions): void {
  const { maxConnections, maxConnectionsPerAddress, onRefusal } = options;
  const proxies = new CallerAddresses(options.trustedProxies);
  const counts = new Map<string, number>();
  if (maxConnections > 0) server.maxConnections = maxConnections;
  server.on("drop", () => onRefusal?.("connections"));
  server.prependListener("connection", (socket: Socket) => {
    const address = plain(socket.remoteAddress ?? "");
    if (address === "" || maxConnectionsPerAddress === 0 || proxies.isTrusted(address)) return;
    const network = networkOf(address);
    const count = (counts.get(network) ?? 0) + 1;
    counts.set(network, count);
    socket.once("close", () => {
      const left = (counts.get(network) ?? 1) - 1;
      if (left === 0) counts.delete(network);
      else counts.set(network, left);
    });
    if (count <= maxConnectionsPerAddress) return;
    onRefusal?.("address_connections");
    socket.destroy();
  });
}
