import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { LeaseOwnership } from "../ownership/lease-ownership.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { forEachParallel } from "../store/for-each-parallel.ts";

export interface ResumeLeasesOptions {
  readonly ownership: LeaseOwnership;
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** Resumes a thousand leases within seconds without overloading the store. */
const PARALLEL = 16;

/**
 * Resumes the leases of the node's previous process, before anything else uses its sandboxes. Removes the instances of sandboxes
 * that other nodes own by now, and resolves to their ids.
 */
export async function resumeLeases(options: ResumeLeasesOptions): Promise<readonly SandboxId[]> {
  const { ownership, registry, providers, onError } = options;
  const moved: SandboxId[] = [];
  await forEachParallel(registry.current(), PARALLEL, async (record) => {
    const { id, provider, epoch } = record;
    try {
      if (epoch === null) {
        // A sandbox from before the node joined the cluster has no lease yet.
        const begun = ownership.begin(record, () => providers.checkpointRequirements(record, { instance: id }));
        registry.change(id, { epoch: await begun });
      } else if (!(await ownership.resume(id, epoch))) {
        await providers.byName.get(provider)?.remove(id);
        registry.drop(id);
        moved.push(id);
      }
    } catch (thrown) {
      onError(SandboxError.from(thrown), id);
      // Without a lease the sandbox must not run.
      await providers.byName.get(provider)?.remove(id, { keepsVolumes: true });
    }
  });
  return moved;
}
