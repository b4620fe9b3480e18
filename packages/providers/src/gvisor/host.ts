import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { type Cgroups, findCgroups } from "../host/cgroups.ts";
import { findAgent, findLauncher } from "../host/find-agent.ts";
import { findRunsc } from "../host/find-runsc.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { Runsc } from "./runsc.ts";

export interface GvisorOptions {
  readonly stateDirectory: string;
  /** The path of runsc; found automatically by default. */
  readonly runsc?: string | undefined;
  /** An existing cgroup for the sandboxes' cgroups, for example one with a limit for all sandboxes together. */
  readonly cgroupParent?: string | undefined;
}

/** Everything on this host that is needed to make sandboxes. */
export interface GvisorHost {
  readonly stateDirectory: string;
  readonly store: InstanceStore;
  readonly runsc: Runsc;
  readonly runscVersion: string;
  readonly cgroups: Cgroups;
  readonly agent: string;
  cgroupPath(id: SandboxId): string;
}

/** Throws when this host lacks something that gVisor sandboxes need, with the remedy. */
export async function findGvisorHost(options: GvisorOptions): Promise<GvisorHost> {
  if (process.platform !== "linux") {
    throw missing("not_linux", `gVisor runs on Linux; this is ${process.platform}`, "use a Linux machine");
  }
  if (process.getuid?.() !== 0) {
    const hint = 'run it again as root: sudo env "PATH=$PATH" …';
    throw missing("not_root", "gVisor sandboxes need root, for their namespaces and cgroups", hint);
  }
  if (options.stateDirectory.includes(",")) {
    const message = `the state directory ${options.stateDirectory} has a comma in its path, which runsc does not support`;
    throw missing("unusable_state_directory", message, "set SANDPIPER_HOME to another directory");
  }
  const runsc = await findRunsc(options.runsc);
  if ("reason" in runsc) throw missing("runsc_missing", runsc.reason, runsc.hint);
  const cgroups = findCgroups();
  if (cgroups === undefined) {
    const hint = "run `npm run setup` in Sandpiper's directory, which mounts them or reports what is missing";
    const message =
      "this host has no cgroups with the controllers cpu, memory and pids, in version 2 also cpuset and io";
    throw missing("cgroups_missing", message, hint);
  }
  const directory = join(options.stateDirectory, "gvisor");
  return {
    stateDirectory: options.stateDirectory,
    store: new InstanceStore(join(directory, "instances")),
    runsc: new Runsc({ runsc: runsc.path, launcher: findLauncher(), root: join(directory, "root") }),
    runscVersion: runsc.version,
    cgroups,
    agent: findAgent(),
    cgroupPath: (id) => instanceCgroup(id, options),
  };
}

function missing(reason: string, message: string, hint: string): SandboxError {
  return new SandboxError("failed_precondition", { reason, message, hint });
}
