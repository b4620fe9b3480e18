import { type InstanceSpec, SandboxError } from "@sandpiper/core";

/** The project of a sandbox that can be made; what a machine cannot give is refused before one is started. */
export function requireProject({ id, container = {} }: InstanceSpec): string {
  const { project, ports = [], binds = [], workspace } = container;
  if (project === undefined) {
    throw new SandboxError("invalid_argument", {
      reason: "project_required",
      message: `sandbox ${id} names no project: the provider vm-docker runs one machine for each project`,
      hint: "name it in container.project; sandboxes of one project share a machine",
    });
  }
  if (binds.length > 0 || (workspace !== undefined && "path" in workspace)) {
    throw new SandboxError("invalid_argument", {
      reason: "no_host_paths",
      message: `sandbox ${id} cannot be lent directories: it runs in a machine that has no files of this one`,
      hint: "write the files into the sandbox, or use the provider docker",
    });
  }
  if (ports.length > 0) {
    throw new SandboxError("invalid_argument", {
      reason: "no_published_ports",
      message: `ports ${ports.join(", ")} of sandbox ${id} cannot be published: its machine has no network device`,
      hint: "leave container.ports out, and reach the port through the sandbox itself",
    });
  }
  return project;
}
