import { type Containers, SandboxError } from "@sandpiper/core";
import type { CacheResource, PullImageBody, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecords } from "../records/sandbox-record.ts";
import type { ContainerService, PullImageOptions } from "./container-service.ts";
import { noSuchCache } from "./no-such-cache.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { Rebuilds } from "./rebuilds.ts";
import { projectOfTenant, tenantProject } from "../sandboxes/tenant-project.ts";

export interface NodeContainersOptions {
  readonly providers: Providers;
  readonly rebuilds: Pick<Rebuilds, "rebuild">;
  readonly records: Pick<SandboxRecords, "get">;
  readonly defaultProvider: string;
}

/** What sandboxes start from where nothing else is named. */
const DEFAULT_ROOT = "host";

/** Images and caches of the engines of this node, for those who may. */
export class NodeContainers implements ContainerService {
  readonly #options: NodeContainersOptions;

  constructor(options: NodeContainersOptions) {
    this.#options = options;
  }

  pull({ image, policy = "missing", provider }: PullImageBody): (options: PullImageOptions) => Promise<void> {
    const named = provider === undefined ? undefined : this.#options.providers.byName.get(provider);
    if (named?.provide !== undefined) {
      // A path of this machine is nothing that callers may name.
      if (image !== DEFAULT_ROOT) throw noSuchRoot(named.name, image);
      return async (options) => await named.provide?.(DEFAULT_ROOT, options);
    }
    const containers = this.#containersOf(provider);
    return (options) => containers.pull(image, { policy, ...options });
  }

  async listCaches(principal: Principal): Promise<readonly CacheResource[]> {
    const { records } = this.#options;
    const all = await Promise.all(this.#engines().map((containers) => containers.listCaches()));
    return all.flat().flatMap(({ project, name, sizeBytes, usedBy }) => {
      const own = projectOfTenant(principal.tenant, project);
      // Places that are made ahead are nobody's.
      const users = usedBy.filter((id) => records.get(id) !== undefined);
      return own === undefined ? [] : [{ project: own, name, sizeBytes, usedBy: users }];
    });
  }

  async clearCache({ tenant }: Principal, { project, name }: Pick<CacheResource, "project" | "name">): Promise<void> {
    const wanted = { project: tenantProject(tenant, project), name };
    for (const containers of this.#engines()) {
      try {
        return await containers.clearCache(wanted);
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (error.code !== "not_found") throw calling(wanted.project, project, error);
      }
    }
    throw noSuchCache(project, name);
  }

  rebuild(principal: Principal, id: string): Promise<SandboxResource> {
    return this.#options.rebuilds.rebuild(principal, id);
  }

  #engines(): readonly Containers[] {
    return [...this.#options.providers.byName.values()].flatMap(({ containers }) => containers ?? []);
  }

  /** The default provider before others, where none is named. */
  #containersOf(name: string | undefined): Containers {
    const { providers, defaultProvider } = this.#options;
    const found =
      name === undefined
        ? (providers.byName.get(defaultProvider)?.containers ?? this.#engines()[0])
        : providers.byName.get(name)?.containers;
    if (found !== undefined) return found;
    throw new SandboxError("unimplemented", {
      reason: "no_containers",
      message: `this node has no ${name === undefined ? "provider of containers" : `provider ${name} that makes containers`}`,
      hint: "whoever runs the node can add docker to its setting providers",
    });
  }
}

function noSuchRoot(provider: string, image: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "no_such_image",
    message: `provider ${provider} has no image ${JSON.stringify(image)}`,
    hint: `give "${DEFAULT_ROOT}", which has what its sandboxes start from`,
  });
}

/** In words that its tenant knows. */
function calling(known: string, own: string, error: SandboxError): SandboxError {
  const { code, reason, hint, details, cause } = error;
  return new SandboxError(code, { reason, message: error.message.replaceAll(known, own), hint, details, cause });
}
