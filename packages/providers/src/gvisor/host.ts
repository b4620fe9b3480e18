import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { Cgroups } from "../host/cgroups.ts";
import { findAgent, findLauncher } from "../host/find-agent.ts";
import { findRunsc } from "../host/find-runsc.ts";
import { missing, requireCgroups, requireLinux, requireRoot } from "../host/host-requirements.ts";
import { instanceCgroup } from "../host/instance-cgroup.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { cgroupTargets, type KillList } from "../host/kill-list.ts";
import { runProgram } from "../host/run-program.ts";
import { Runtimes } from "./runtimes.ts";

export interface GvisorOptions {
  readonly stateDirectory: string;
  /** The path of runsc; found automatically by default. */
  readonly runsc?: string | undefined;
  readonly killList?: KillList | undefined;
}

/** Everything on this host that is needed to make sandboxes. */
export interface GvisorHost {
  readonly stateDirectory: string;
  readonly store: InstanceStore;
  readonly runscVersion: string;
  readonly runtimes: Runtimes;
  /** Why sandboxes have no network on this host, if they have none. */
  readonly networkProblem: string | undefined;
  readonly cgroups: Cgroups;
  cgroupPath(id: SandboxId): string;
}

/** Throws when this host lacks something that gVisor sandboxes need, with the remedy. */
export async function findGvisorHost(options: GvisorOptions): Promise<GvisorHost> {
  requireLinux("gVisor sandboxes");
  requireRoot("gVisor sandboxes", "for their namespaces and cgroups");
  if (options.stateDirectory.includes(",")) {
    const message = `the state directory ${options.stateDirectory} has a comma in its path, which runsc does not support`;
    throw missing("unusable_state_directory", message, "set SANDPIPER_HOME to another directory");
  }
  const runsc = await findRunsc(options.runsc);
  if ("reason" in runsc) throw missing("runsc_missing", runsc.reason, runsc.hint);
  const cgroups = requireCgroups();
  const launcher = findLauncher();
  const networkProblem = await checkNetwork(launcher);
  const directory = join(options.stateDirectory, "gvisor");
  const cgroupPath = (id: SandboxId) => instanceCgroup(id, options);
  const guarded = { killList: options.killList, targetsOf: (id: SandboxId) => cgroupTargets(cgroupPath(id)) };
  const store = new InstanceStore(join(directory, "instances"), guarded);
  return {
    stateDirectory: options.stateDirectory,
    store,
    runscVersion: runsc.version,
    runtimes: new Runtimes({
      directory: join(directory, "programs"),
      installed: runsc,
      agent: findAgent(),
      launcher,
      root: join(directory, "root"),
      hasNetwork: networkProblem === undefined,
      store,
    }),
    networkProblem,
    cgroups,
    cgroupPath,
  };
}

/** Undefined when the kernel can redirect the network of a sandbox. */
async function checkNetwork(launcher: string): Promise<string | undefined> {
  const { exitCode, stdout, failure } = await runProgram([launcher, "--check-network"]);
  return exitCode === 0 ? undefined : (failure ?? stdout.trim());
}
