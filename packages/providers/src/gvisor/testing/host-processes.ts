import { readFile } from "node:fs/promises";
import type { SandboxId } from "@sandpiper/protocol";
import { tracesOf } from "./traces.ts";

export interface HostProcess {
  readonly pid: string;
  readonly name: "sandbox" | "gofer" | "stub";
  readonly status: Readonly<Record<string, string>>;
}

/** The Sentry, the gofer, and the processes in which programs of the sandbox run. Fails if one of the kinds is missing. */
export async function hostProcesses(id: SandboxId, stateDirectory: string): Promise<HostProcess[]> {
  const pids = (await tracesOf(id, stateDirectory)).flatMap((trace) => {
    const [, pid, command] = /^process (\d+) (\S*)/.exec(trace) ?? [];
    return pid === undefined ? [] : [{ pid, name: nameOf(command ?? "") }];
  });
  for (const name of ["sandbox", "gofer", "stub"]) {
    if (!pids.some((each) => each.name === name)) throw new Error(`sandbox ${id} has no ${name} process`);
  }
  return await Promise.all(pids.map(async (each) => ({ ...each, status: await statusOf(each.pid) })));
}

function nameOf(command: string): HostProcess["name"] {
  if (command.startsWith("runsc-sandbox")) return "sandbox";
  return command.startsWith("runsc-gofer") ? "gofer" : "stub";
}

async function statusOf(pid: string): Promise<Record<string, string>> {
  const lines = (await readFile(`/proc/${pid}/status`, "utf8")).trim().split("\n");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split(":");
      return [name, value.join(":").trim().split(/\s+/).join(" ")];
    }),
  );
}
