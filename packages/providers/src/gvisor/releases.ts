import { type CheckpointRequirements, type KeptRelease, type Releases, SandboxError } from "@sandpiper/core";
import type { GvisorHost } from "./host.ts";
import { requirementsOf } from "./runtimes.ts";

/** The releases of gVisor and the agents that this host keeps. */
export class GvisorReleases implements Releases {
  readonly #findHost: () => Promise<GvisorHost>;

  constructor(findHost: () => Promise<GvisorHost>) {
    this.#findHost = findHost;
  }

  async list(): Promise<readonly KeptRelease[]> {
    const { runtimes, store } = await this.#findHost();
    const current = await runtimes.current();
    const instances = await Promise.all(
      (await store.list()).map(async ({ spec: { id } }) => ({ id, runtime: await runtimes.nameOf(id) })),
    );
    return (await runtimes.kept()).map(({ kind, version }) => ({
      program: kind,
      version,
      isCurrent: current[kind] === version,
      instances: instances.filter(({ runtime }) => runtime[kind] === version).map(({ id }) => id),
    }));
  }

  async add(path: string): Promise<KeptRelease> {
    const { runtimes } = await this.#findHost();
    const { kind, version } = await runtimes.add(path);
    const added = (await this.list()).find((each) => each.program === kind && each.version === version);
    if (added !== undefined) return added;
    throw new SandboxError("runsc_missing", {
      message: `${path} was not kept: its version ${version} cannot be the name of a file`,
      hint: "use a release of gVisor, or a build whose version has only letters, digits and dots",
    });
  }

  async remove({ program, version }: KeptRelease): Promise<void> {
    const { runtimes } = await this.#findHost();
    if (program === "runsc" || program === "agent") await runtimes.remove(program, version);
  }

  isRequired({ program, version }: KeptRelease, requirements: CheckpointRequirements): boolean {
    const { runsc, agent } = requirementsOf(requirements);
    return version === (program === "runsc" ? runsc : agent);
  }
}
