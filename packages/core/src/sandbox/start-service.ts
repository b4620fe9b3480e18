import type { AgentLink } from "../agent/agent-link.ts";
import { ProcessHandle } from "../process/process-handle.ts";
import type { Instance } from "../provider.ts";

/** The id of the process that runs an instance's service. */
const SERVICE_PROCESS = "service";

/**
 * Starts the instance's service, if it has one. Returns undefined if the agent already knows the service: an adopted instance
 * keeps it, running or ended.
 */
export async function startService(
  { service }: Instance,
  link: AgentLink,
  env: Readonly<Record<string, string>>,
): Promise<ProcessHandle | undefined> {
  if (service === undefined) return undefined;
  const { latest } = link;
  if (latest.hello.processes.some(({ process }) => process === SERVICE_PROCESS)) return undefined;
  const { argv, cwd, user } = service;
  // Without the sandbox's time limit, which is for commands.
  const params = { process: SERVICE_PROCESS, argv: [...argv], cwd, user, env: { ...env } };
  const { process: id, pid } = await latest.call("process.spawn", params);
  return new ProcessHandle({ id, pid, offset: 0, lendsMemory: false, client: () => link.client() });
}
