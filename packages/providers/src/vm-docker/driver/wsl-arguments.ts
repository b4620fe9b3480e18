/** In the distribution. */
const ENGINE_SOCKET = "/run/docker.sock";

function distributionOf(id: string): string {
  return `sandpiper-${id}`;
}

/** Imports a new distribution of version 2, which has a Linux kernel. */
export function importArguments(id: string, directory: string, archive: string): string[] {
  return ["--import", distributionOf(id), directory, archive, "--version", "2"];
}

/** Runs the engine; a distribution runs as long as a process runs in it. */
export function engineArguments(id: string): string[] {
  const engine = ["dockerd", "--host", `unix://${ENGINE_SOCKET}`, "--storage-driver", "overlay2"];
  const closed = ["--iptables=false", "--ip6tables=false", "--ip-forward=false"];
  return ["--distribution", distributionOf(id), "--user", "root", "--exec", ...engine, ...closed];
}

/** Runs a program whose standard streams are one connection to the engine. */
export function dialArguments(id: string): string[] {
  const relay = ["socat", "STDIO", `UNIX-CONNECT:${ENGINE_SOCKET}`];
  return ["--distribution", distributionOf(id), "--user", "root", "--exec", ...relay];
}

/** Ends the distribution's processes and removes its disk. */
export function unregisterArguments(id: string): string[] {
  return ["--unregister", distributionOf(id)];
}
