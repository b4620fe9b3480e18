import type { CheckpointRequirements, KeptRelease, Provider, Releases } from "@sandpiper/core";
import type { NodeResource, SandboxId } from "@sandpiper/protocol";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";

export interface NeededRelease extends KeptRelease {
  readonly provider: string;
  /** The sandboxes whose state or checkpoints need it, on any node. */
  readonly sandboxes: readonly SandboxId[];
}

export interface ReleaseKeeperOptions {
  readonly providers: Iterable<Provider>;
  /** All sandboxes in the store. */
  readonly saved: () => Promise<readonly SavedSandbox[]>;
  /** The nodes of the cluster; none for a standalone node. */
  readonly nodes: () => Promise<readonly NodeResource[]>;
}

/** Knows which kept releases are still needed, and removes the others. */
export class ReleaseKeeper {
  readonly #options: ReleaseKeeperOptions;
  #runtimes: readonly string[] = [];

  constructor(options: ReleaseKeeperOptions) {
    this.#options = options;
  }

  /** The runtimes of this node as requirements of checkpoints name them, those of new sandboxes first. */
  get runtimes(): readonly string[] {
    return this.#runtimes;
  }

  async list(): Promise<readonly NeededRelease[]> {
    const saved = await this.#options.saved();
    const lists = this.#providers().map(async ({ name, releases }) =>
      (await keptBy(releases)).map((release) => ({
        ...release,
        provider: name,
        sandboxes: saved.filter((each) => isNeeded(releases, release, each)).map(({ record }) => record.id),
      })),
    );
    return (await Promise.all(lists)).flat();
  }

  /** Call after a start, and when releases may have been added. */
  async refresh(): Promise<void> {
    const lists = await Promise.all(this.#providers().map(({ releases }) => keptBy(releases)));
    const runtimes = lists.flat().filter(({ program }) => program !== "agent");
    this.#runtimes = runtimes
      .toSorted((one, other) => Number(other.isCurrent) - Number(one.isCurrent))
      .map(({ program, version }) => `${program} ${version}`);
  }

  /** Removes the releases that nothing needs, and resolves to them. */
  async prune(): Promise<readonly NeededRelease[]> {
    const kept = await Promise.all(this.#providers().map(({ releases }) => keptBy(releases)));
    // Most nodes have one release: nothing has to be read from the store.
    if (kept.flat().every(({ isCurrent, instances }) => isCurrent || instances.length > 0)) return [];
    const others = (await this.#options.nodes()).filter(({ isThisNode, isAlive }) => isAlive && !isThisNode);
    // A node of an earlier version does not announce what its next sandbox will need.
    if (others.some(({ runtimes }) => runtimes === undefined)) return [];
    const startedElsewhere = new Set(others.map(({ runtimes }) => runtimes?.[0]));
    const removed: NeededRelease[] = [];
    for (const release of await this.list()) {
      const { isCurrent, instances, sandboxes, program, version, provider } = release;
      if (isCurrent || instances.length > 0 || sandboxes.length > 0) continue;
      if (startedElsewhere.has(`${program} ${version}`)) continue;
      await this.#providers()
        .find(({ name }) => name === provider)
        ?.releases.remove(release);
      removed.push(release);
    }
    await this.refresh();
    return removed;
  }

  #providers(): readonly { readonly name: string; readonly releases: Releases }[] {
    return [...this.#options.providers].flatMap(({ name, releases }) =>
      releases === undefined ? [] : { name, releases },
    );
  }
}

/** A host that cannot run the provider keeps nothing of it; the provider's probe reports why. */
async function keptBy(releases: Releases): Promise<readonly KeptRelease[]> {
  return await releases.list().catch(() => []);
}

function isNeeded(releases: Releases, release: KeptRelease, { requirements, checkpoints }: SavedSandbox): boolean {
  const all: readonly CheckpointRequirements[] = [requirements, ...checkpoints.map((each) => each.requirements)];
  return all.some((each) => releases.isRequired(release, each));
}
