import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecords } from "../records/sandbox-record.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { ClusterCustody } from "../ownership/lease-ownership.ts";

export interface ResumeLeasesOptions {
  readonly custody: ClusterCustody;
  readonly records: SandboxRecords;
  readonly providers: Providers;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** So many at once that a thousand take seconds, and few enough that a store can bear it. */
const AT_ONCE = 16;

/**
 * After a start: what this node had and nobody has taken since is its own again; the rest is not, and whatever of it still
 * runs here must end before anything else happens. Gives the ids of those that are gone.
 */
export async function resumeLeases(options: ResumeLeasesOptions): Promise<readonly SandboxId[]> {
  const { custody, records, providers, onError } = options;
  const gone: SandboxId[] = [];
  const queue = records.live().values();
  const worker = async () => {
    for (const record of queue) {
      const { id, provider, epoch } = record;
      try {
        // One from before the node came into the cluster has no lease yet.
        if (epoch === null) records.change(id, { epoch: await custody.begin(record) });
        else if (!(await custody.resume(id, epoch))) {
          await providers.byName.get(provider)?.remove(id);
          records.remove(id);
          gone.push(id);
        }
      } catch (thrown) {
        onError(SandboxError.from(thrown), id);
        // Without a lease it must not run, whatever the reason.
        await providers.byName.get(provider)?.remove(id, { keepsVolumes: true });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return gone;
}
