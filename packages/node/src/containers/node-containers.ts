import { type Containers, type PullProgress, SandboxError } from "@sandpiper/core";
import type { CacheResource, PullImageBody } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { projectOfTenant, tenantProject } from "../sandboxes/tenant-project.ts";

export interface NodeContainersOptions {
  readonly registry: Pick<SandboxRegistry, "record">;
  readonly providers: Providers;
  readonly defaultProvider: string;
}

export interface PullImageOptions {
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}

/** The root filesystem of sandboxes without an image. */
const DEFAULT_ROOT = "host";

/** The images and caches of this node's container engines. Other tenants' caches do not exist for a caller. */
export class NodeContainers {
  readonly #options: NodeContainersOptions;

  constructor(options: NodeContainersOptions) {
    this.#options = options;
  }

  /** Throws at once if no provider can pull; otherwise returns the function that pulls. */
  pull({ image, policy = "missing", provider }: PullImageBody): (options: PullImageOptions) => Promise<void> {
    const named = provider === undefined ? undefined : this.#options.providers.byName.get(provider);
    if (named?.provide !== undefined) {
      // Callers may not name paths of this machine.
      if (image !== DEFAULT_ROOT) throw noSuchRoot(named.name, image);
      return async (options) => await named.provide?.(DEFAULT_ROOT, options);
    }
    const containers = this.#containersOf(provider);
    return (options) => containers.pull(image, { policy, ...options });
  }

  async listCaches(principal: Principal): Promise<readonly CacheResource[]> {
    const { registry } = this.#options;
    const all = await Promise.all(this.#engines().map((containers) => containers.listCaches()));
    return all.flat().flatMap(({ project, name, sizeBytes, usedBy }) => {
      const own = projectOfTenant(principal.tenant, project);
      // Prepared instances have no record.
      const users = usedBy.filter((id) => registry.record(id) !== undefined);
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
        if (error.code !== "not_found") throw withProject(project, { error, internal: wanted.project });
      }
    }
    throw noSuchCache(project, name);
  }

  #engines(): readonly Containers[] {
    return [...this.#options.providers.byName.values()].flatMap(({ containers }) => containers ?? []);
  }

  /** Prefers the default provider if none is named. */
  #containersOf(name: string | undefined): Containers {
    const { providers, defaultProvider } = this.#options;
    const containers =
      name === undefined
        ? (providers.byName.get(defaultProvider)?.containers ?? this.#engines()[0])
        : providers.byName.get(name)?.containers;
    if (containers !== undefined) return containers;
    throw new SandboxError("no_container_provider", {
      message: `this node has no ${name === undefined ? "provider that runs containers" : `provider ${name} that runs containers`}`,
      hint: "the operator can add docker to the node's setting providers",
    });
  }
}

function noSuchRoot(provider: string, image: string): SandboxError {
  return new SandboxError("unusable_image", {
    message: `provider ${provider} has no image ${JSON.stringify(image)}`,
    hint: `use "${DEFAULT_ROOT}", the root filesystem of its sandboxes`,
  });
}

/** Replaces the provider's name of the project with the tenant's. */
function withProject(
  project: string,
  { error, internal }: { readonly error: SandboxError; readonly internal: string },
): SandboxError {
  const { code, reason, hint, details, cause } = error;
  const message = error.message.replaceAll(internal, project);
  return SandboxError.fromFields({ code, reason, message, hint, details, cause });
}

export function noSuchCache(project: string, name: string): SandboxError {
  return new SandboxError("no_such_cache", {
    message: `there is no cache ${JSON.stringify(name.slice(0, 64))} of project ${JSON.stringify(project.slice(0, 64))}`,
  });
}
