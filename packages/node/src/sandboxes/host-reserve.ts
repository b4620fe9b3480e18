import { fileURLToPath } from "node:url";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { NodeConfig } from "../config/node-config.ts";
import { type FreeResources, freeResources, type HostResource } from "./free-resources.ts";

export interface HostReserveOptions {
  /** The node keeps this much free; 0 turns the check off. */
  readonly reserve: { readonly diskMib: number; readonly memoryMib: number; readonly pids: number };
  /** Directories on the disks to watch. */
  readonly paths: readonly string[];
  readonly clock: Clock;
  /** Replaces the host; for tests. */
  readonly measure?: ((paths: readonly string[]) => FreeResources) | undefined;
}

const MIB = 1024 * 1024;
/** A burst of requests reads the host once. */
const FRESH_MS = 250;

const units = { disk: "MiB", memory: "MiB", pids: "pids" } as const satisfies Record<HostResource, string>;
const all: readonly HostResource[] = ["disk", "memory", "pids"];

/**
 * Keeps a reserve of disk, memory and pids on the host: below it the node starts nothing new, so that its records, its running
 * sandboxes and their checkpoints do not fail. The check reads the host each time, so the node recovers by itself.
 */
export class HostReserve {
  readonly #options: HostReserveOptions;
  #measured: { readonly free: FreeResources; readonly atMs: number } | undefined;

  constructor(options: HostReserveOptions) {
    this.#options = options;
  }

  /** The reserve of a node, which watches its home and its directory store. */
  static of({ reserve, home, store }: Pick<NodeConfig, "reserve" | "home" | "store">, clock: Clock): HostReserve {
    const paths = store?.startsWith("file://") ? [home, fileURLToPath(store)] : [home];
    return new HostReserve({ reserve, paths, clock });
  }

  /** Throws `resource_exhausted` (reason `reserve_reached`) if the host is short of one of these; by default of any. */
  require(what: string, resources: readonly HostResource[] = all, { diskBytes = 0 } = {}): void {
    const { free } = this.#read();
    for (const resource of resources) {
      const reserve = this.#reserveOf(resource);
      const { left, where } = free[resource] ?? {};
      if (reserve === 0 || left === undefined) continue;
      const wanted = resource === "disk" ? Math.ceil(diskBytes / MIB) : 0;
      if (left - wanted < reserve) throw reserveReached(what, { resource, free: left, reserve, where, wanted });
    }
  }

  /** The resources of which less is free than the reserve. */
  lowOn(): HostResource[] {
    const { free } = this.#read();
    return all.filter((resource) => {
      const left = free[resource]?.left;
      return left !== undefined && left < this.#reserveOf(resource);
    });
  }

  /** For metrics and diagnosis: what is free, and what the node keeps. Resources that the host does not report are missing. */
  report(): {
    readonly resource: HostResource;
    readonly free: number;
    readonly reserve: number;
    readonly unit: string;
  }[] {
    const { free } = this.#read();
    return all.flatMap((resource) => {
      const left = free[resource]?.left;
      return left === undefined
        ? []
        : [{ resource, free: left, reserve: this.#reserveOf(resource), unit: units[resource] }];
    });
  }

  #read(): { readonly free: FreeResources } {
    const { clock, paths, measure = freeResources } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#measured === undefined || nowMs - this.#measured.atMs >= FRESH_MS) {
      this.#measured = { free: measure(paths), atMs: nowMs };
    }
    return this.#measured;
  }

  #reserveOf(resource: HostResource): number {
    const { diskMib, memoryMib, pids } = this.#options.reserve;
    return { disk: diskMib, memory: memoryMib, pids }[resource];
  }
}

const remedies = {
  disk: "delete files, images or checkpoints on the host's disk",
  memory: "pause or destroy sandboxes, or end other programs of the host",
  pids: "destroy sandboxes, end other programs of the host, or raise kernel.pid_max",
} as const satisfies Record<HostResource, string>;

interface Shortage {
  readonly resource: HostResource;
  readonly free: number;
  readonly reserve: number;
  readonly where: string | undefined;
  /** For an upload, whose size is known. */
  readonly wanted: number;
}

function reserveReached(what: string, { resource, free, reserve, where, wanted }: Shortage): SandboxError {
  const unit = units[resource];
  const amount = resource === "pids" ? `${free} free pids` : `${free} ${unit} of free ${resource}`;
  const place = where === undefined ? "" : ` at ${where}`;
  const need = wanted === 0 ? "" : `, this needs ${wanted} ${unit}`;
  return new SandboxError("reserve_reached", {
    message: `cannot ${what}: the node's host has ${amount}${place}${need}, and the node keeps ${reserve} ${unit} in reserve`,
    hint: `${remedies[resource]}, and retry; the setting reserve sets how much the node keeps free`,
    details: { resource, free, reserve, unit },
  });
}
