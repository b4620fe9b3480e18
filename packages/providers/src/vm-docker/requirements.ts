import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { portKey } from "@sandpiper/protocol";

/** Returns the sandbox's project; rejects what machines do not support before one is started. */
export function requireProject({ id, container = {} }: InstanceSpec): string {
  const { project, ports = [], binds = [], workspace } = container;
  if (project === undefined) {
    throw new SandboxError("project_required", {
      message: `sandbox ${id} has no project: provider vm-docker runs one machine for each project`,
      hint: "set container.project; sandboxes of one project share a machine",
    });
  }
  if (binds.length > 0 || (workspace !== undefined && "path" in workspace)) {
    throw new SandboxError("no_host_paths", {
      message: `sandbox ${id} cannot mount host directories: its machine has no access to the files of this host`,
      hint: "write the files into the sandbox, or use provider docker",
    });
  }
  if (ports.length > 0) {
    throw new SandboxError("no_published_ports", {
      message: `cannot publish ports ${ports.map(portKey).join(", ")} of sandbox ${id}: its machine has no network device`,
      hint: "omit container.ports, and reach the port through the sandbox itself",
    });
  }
  return project;
}
