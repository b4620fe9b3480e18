import { type Clock, systemClock } from "@sandpiper/core";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { NodeDatabase } from "../records/database.ts";
import { createDomain, type DomainOptions } from "../start/domain.ts";
import { createStorage, openHome } from "../start/storage.ts";

interface TestDomainOptions extends Omit<DomainOptions, "clock"> {
  readonly clock?: Clock | undefined;
  readonly database?: NodeDatabase | undefined;
  readonly cluster?: Cluster | undefined;
}

/** The storage and the domain of a node, without its interfaces to the outside. */
export function testDomain(config: NodeConfig, { database, cluster, ...options }: TestDomainOptions) {
  const { clock = systemClock } = options;
  const onError = (error: Parameters<DomainOptions["onError"]>[0]) => options.onError(error, {});
  const storage = createStorage(config, { clock, database: database ?? openHome(config), cluster, onError });
  return { ...storage, ...createDomain(config, storage, { ...options, clock }), keys: storage.ownKeys };
}
