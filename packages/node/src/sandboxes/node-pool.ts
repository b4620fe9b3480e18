import { type Clock, type Sandbox, SandboxConfig, type SandboxError, WarmPool } from "@sandpiper/core";
import type { PoolKeyBody, PoolResource, SetPoolBody } from "@sandpiper/protocol";
import { instanceKeyText } from "./instance-key.ts";
import { imageOf, type SandboxDefaults } from "./new-sandbox.ts";
import type { Providers } from "./providers.ts";

export interface NodePoolOptions {
  readonly providers: Providers;
  readonly defaults: SandboxDefaults;
  readonly clock: Clock;
  readonly maxBoots: number;
  readonly maxAgeMs: number;
  readonly sweepIntervalMs: number;
  readonly onError: (error: SandboxError) => void;
}

/** Whoever has just claimed one is about to run something, and a boot at the same time would slow it down. */
const REFILL_DELAY_MS = 50;

/** What a pool without a target has to show. */
const nothing = { ready: 0, booting: 0, hits: 0, misses: 0, failures: 0, meanWaitMs: null, retryInMs: null };

/** Instances that are started and belong to nobody yet. */
export class NodePool {
  readonly #options: NodePoolOptions;
  readonly #pool: WarmPool<PoolKeyBody, Sandbox>;

  constructor(options: NodePoolOptions) {
    const { providers, clock, maxBoots, maxAgeMs, sweepIntervalMs, onError } = options;
    this.#options = options;
    this.#pool = new WarmPool<PoolKeyBody, Sandbox>({
      keyOf: instanceKeyText,
      boot: async (key, signal) => {
        const sandbox = await providers.boot(key, { signal, isWarm: true });
        sandbox.closed.then(() => this.#pool.remove(sandbox));
        return sandbox;
      },
      discard: (sandbox) => providers.destroy(sandbox.provider, sandbox.id),
      isHealthy: (sandbox) => sandbox.isHealthy(),
      clock,
      maxBoots,
      maxAgeMs,
      sweepIntervalMs,
      backOff: { firstMs: 500, mostMs: 60_000 },
      refillDelayMs: REFILL_DELAY_MS,
      onError,
    });
  }

  /** One that is ready; undefined when there is none for this key. */
  claim(key: PoolKeyBody, signal: AbortSignal): Promise<Sandbox | undefined> {
    return this.#pool.claim(key, signal);
  }

  /** Boots one for a caller who waits: it goes before those that are made ahead. */
  boot<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#pool.withBootSlot(work, signal);
  }

  list(): PoolResource[] {
    return this.#pool.stats().map((stats) => ({ ...stats }));
  }

  set({ target, ...given }: SetPoolBody): PoolResource {
    const { defaults, providers } = this.#options;
    const { memoryMib, vcpuCount, diskMib, maxProcesses } = SandboxConfig.parse({
      memoryMib: given.memoryMib ?? defaults.memoryMib,
      vcpuCount: given.vcpuCount ?? defaults.vcpuCount,
      diskMib: given.diskMib ?? defaults.diskMib,
      maxProcesses: given.maxProcesses ?? defaults.maxProcesses,
    });
    const provider = given.provider ?? defaults.provider;
    // An unknown provider is an error now and not at every boot.
    const image = imageOf(given.image, providers.require(provider), defaults);
    const key = { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses };
    this.#pool.setTarget(key, target);
    const text = instanceKeyText(key);
    return this.list().find((pool) => instanceKeyText(pool.key) === text) ?? { key, target, ...nothing };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
