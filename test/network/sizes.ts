import type { NetworkContractOptions } from "./network-contract.ts";

type Sizes = Pick<NetworkContractOptions, "connections" | "transferBytes" | "timeoutMs">;

/** `npm run network` runs the full sizes; `npm test` those that fit into a run of all tests. */
export function fullSize(reduced: Sizes, full: Partial<Sizes> = {}): Sizes {
  if (process.env["SANDPIPER_NETWORK_TESTS"] !== "full") return reduced;
  return { connections: 10_000, transferBytes: 1024 ** 3, timeoutMs: 900_000, ...full };
}
