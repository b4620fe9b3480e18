import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { LeaseOwnership } from "../ownership/lease-ownership.ts";
import { instanceKey } from "../sandboxes/instance-key.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";

export interface ResumeLeasesOptions {
  readonly ownership: LeaseOwnership;
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** A thousand sandboxes take seconds, and the store stays responsive. */
const PARALLEL = 16;

/**
 * Takes up the leases of an earlier process of this node. Instances of sandboxes that other nodes own by now are removed
 * before anything else happens. Resolves to the ids of those.
 */
export async function resumeLeases(options: ResumeLeasesOptions): Promise<readonly SandboxId[]> {
  const { ownership, registry, providers, onError } = options;
  const gone: SandboxId[] = [];
  await forEachParallel(registry.current(), PARALLEL, async (record) => {
    const { id, provider, epoch } = record;
    try {
      if (epoch === null) {
        // A sandbox from before the node joined the cluster has no lease yet.
        const requirements = () => providers.checkpointRequirements(instanceKey(record));
        registry.change(id, { epoch: await ownership.begin(record, requirements) });
      } else if (!(await ownership.resume(id, epoch))) {
        await providers.byName.get(provider)?.remove(id);
        registry.drop(id);
        gone.push(id);
      }
    } catch (thrown) {
      onError(SandboxError.from(thrown), id);
      // Without a lease it must not run, whatever the cause.
      await providers.byName.get(provider)?.remove(id, { keepsVolumes: true });
    }
  });
  return gone;
}
