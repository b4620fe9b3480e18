import { run } from "../../bench/run.ts";

/** A non-login root shell has no sbin on its PATH. */
export const systemEnv: NodeJS.ProcessEnv = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };

export async function ip(...args: readonly string[]): Promise<string> {
  return (await run("ip", args, { env: systemEnv })).stdout;
}

export async function listNamespaces(): Promise<string[]> {
  const lines = (await ip("netns", "list")).split("\n");
  return lines.map((line) => line.split(" ")[0] ?? "").filter((name) => name !== "");
}

/** Kills every process in a namespace and removes it with its interfaces. Another test may do the same concurrently. */
export async function removeNamespace(name: string): Promise<void> {
  try {
    for (const pid of (await ip("netns", "pids", name)).split("\n").filter((line) => line !== "")) kill(Number(pid));
    await ip("netns", "delete", name);
  } catch (error) {
    if ((await listNamespaces()).includes(name)) throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has exited.
  }
}

/** Enters only the network namespace: `ip netns exec` would also hide the machine's cgroups. */
export function inNamespace(name: string, argv: readonly string[]): readonly [string, ...string[]] {
  return ["nsenter", `--net=/run/netns/${name}`, ...argv];
}
