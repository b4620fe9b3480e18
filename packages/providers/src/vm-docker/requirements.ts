import { type InstanceSpec, SandboxError } from "@sandpiper/core";

/** The project of sandboxes that name none. A node names one for each sandbox, to keep tenants apart. */
const DEFAULT_PROJECT = "default";

/** Returns the sandbox's project; rejects what machines do not support before one is started. */
export function requireProject({ id, container = {} }: InstanceSpec): string {
  const { project = DEFAULT_PROJECT, ports = [], binds = [], workspace } = container;
  if (binds.length > 0 || (workspace !== undefined && "path" in workspace)) {
    throw new SandboxError("no_host_paths", {
      message: `sandbox ${id} cannot mount host directories: its machine has no access to the files of this host`,
      hint: "write the files into the sandbox, or use provider docker",
    });
  }
  if (ports.length > 0) {
    throw new SandboxError("no_published_ports", {
      message: `cannot publish ports ${ports.join(", ")} of sandbox ${id}: its machine has no network device`,
      hint: "omit container.ports, and reach the port through the sandbox itself",
    });
  }
  return project;
}
