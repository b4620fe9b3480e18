import { type MachineInfo, type Machines, SandboxError } from "@sandpiper/core";
import type { MachineDetails, MachineResource, StopMachineBody } from "@sandpiper/protocol";
import { isAdmin } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { projectOfTenant } from "../sandboxes/tenant-project.ts";

export interface NodeMachinesOptions {
  readonly registry: Pick<SandboxRegistry, "record">;
  readonly providers: Pick<Providers, "byName">;
}

interface FoundMachine {
  readonly machines: Machines;
  readonly info: MachineInfo;
  readonly resource: MachineResource;
}

/** The machines of this node's projects. Other tenants' machines exist only for an admin. */
export class NodeMachines {
  readonly #options: NodeMachinesOptions;

  constructor(options: NodeMachinesOptions) {
    this.#options = options;
  }

  async list(principal: Principal): Promise<readonly MachineResource[]> {
    return (await this.#findAll(principal)).map(({ resource }) => resource);
  }

  async get(principal: Principal, id: string): Promise<MachineDetails> {
    const { machines, resource } = await this.#find(principal, id);
    return { ...resource, console: await machines.readConsole(id) };
  }

  async stop(principal: Principal, id: string, { force = false }: StopMachineBody): Promise<void> {
    const { machines, info, resource } = await this.#find(principal, id);
    if (info.sandboxes.length > 0 && !force) {
      throw new SandboxError("machine_in_use", {
        message: `machine ${id} of project ${resource.project} was not stopped: sandboxes use it: ${info.sandboxes.join(", ")}`,
        hint: "destroy the sandboxes first, or set force, which makes them fail",
        details: { sandboxes: info.sandboxes },
      });
    }
    await machines.stop(id);
  }

  async #find(principal: Principal, id: string): Promise<FoundMachine> {
    const found = (await this.#findAll(principal)).find(({ info }) => info.id === id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_machine", {
      message: `machine ${JSON.stringify(id.slice(0, 64))} not found on this node`,
      hint: "list the machines of this node",
    });
  }

  async #findAll(principal: Principal): Promise<readonly FoundMachine[]> {
    const all = [...this.#options.providers.byName.values()].map(async ({ name, machines }) => {
      if (machines === undefined) return [];
      return (await machines.list()).flatMap((info) => {
        const own = projectOfTenant(principal.tenant, info.project);
        if (own === undefined && !isAdmin(principal)) return [];
        return [{ machines, info, resource: this.#resource(info, name, own ?? info.project) }];
      });
    });
    return (await Promise.all(all)).flat();
  }

  #resource(info: MachineInfo, provider: string, project: string): MachineResource {
    const { id, state, memoryMib, vcpuCount, diskMib, startedAt, error } = info;
    return {
      id,
      project,
      provider,
      state,
      // Prepared instances have no record.
      sandboxes: info.sandboxes.filter((sandbox) => this.#options.registry.record(sandbox) !== undefined),
      memoryMib,
      vcpuCount,
      diskMib,
      startedAt: startedAt?.toISOString() ?? null,
      error: error === undefined ? null : publicError(error, info.project, project),
    };
  }
}

/** Hides messages of unexpected errors, which may contain paths of the host, and the internal name of the project. */
function publicError({ code, reason, message }: SandboxError, internal: string, project: string) {
  if (code === "internal") return { reason, message: "the machine failed; see the node's log for the cause" };
  return { reason, message: message.replaceAll(internal, project) };
}
