import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { portKey } from "@sandpiper/protocol";

/** The project of sandboxes that name none. A node names one for each sandbox, to keep tenants apart. */
const DEFAULT_PROJECT = "default";

/** Returns the sandbox's project; rejects what machines do not support before one is started. */
export function requireProject({ id, container = {} }: InstanceSpec): string {
  const { project = DEFAULT_PROJECT, binds = [], ports = [] } = container;
  if (binds.length > 0) {
    throw new SandboxError("no_host_paths", {
      message: `sandbox ${id} cannot mount host directories: its machine has no access to the files of this host`,
      hint: "set container.workspace, which is copied into the sandbox; write the files into it; or use provider docker",
    });
  }
  const udp = ports.filter((port) => typeof port === "object" && port.protocol === "udp");
  if (udp.length > 0) {
    throw new SandboxError("no_published_ports", {
      message: `cannot publish ports ${udp.map(portKey).join(", ")} of sandbox ${id}: machines publish TCP ports only`,
      hint: "omit UDP ports from container.ports, or use provider docker",
    });
  }
  return project;
}
