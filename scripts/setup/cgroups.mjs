import { accessSync, constants, writeFileSync } from "node:fs";
import { planCgroupMounts } from "./cgroup-plan.mjs";
import { runCommand } from "./command.mjs";
import { textOf } from "./programs.mjs";
import { SetupError } from "./setup-error.mjs";

/** Mounting, and then enabling controllers, takes two rounds. */
const MAX_ROUNDS = 3;

/** @returns {import("./plan.mjs").Plan} */
export function planCgroups() {
  const { detail, problems, actions } = planCgroupMounts(viewOfThisHost());
  return { detail, problems, work: actions.length === 0 ? undefined : prepare };
}

async function prepare() {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { actions, problems } = planCgroupMounts(viewOfThisHost());
    const [problem] = problems;
    if (problem !== undefined) throw new SetupError(`Cgroups: missing: ${problem.missing}`, problem.remedy);
    if (actions.length === 0) return;
    for (const action of actions) await ("argv" in action ? run(action.argv) : write(action.path, action.text));
  }
  throw new SetupError(
    "Cgroups are mounted and still lack controllers.",
    "Look at `mount | grep cgroup`, unmount what is incomplete, then run the same command again.",
  );
}

/** @param {readonly [string, ...string[]]} argv */
async function run(argv) {
  const hint = "Run it as root outside a container, or start the container with its cgroups mounted (--privileged).";
  await runCommand({ title: "Setting up cgroups", argv, cwd: "/", hint });
}

/**
 * @param {string} path
 * @param {string} text
 */
function write(path, text) {
  try {
    writeFileSync(path, text);
  } catch (error) {
    // A container's processes are in its top cgroup, and only a cgroup without processes may enable controllers for others.
    const directory = path.slice(0, path.lastIndexOf("/"));
    throw new SetupError(
      `Cgroups: writing "${text}" to ${path} failed (${error instanceof Error ? error.message : error}).`,
      `Run: mkdir -p ${directory}/init && xargs -rn1 < ${directory}/cgroup.procs > ${directory}/init/cgroup.procs; ` +
        `echo ${text} > ${path}`,
    );
  }
}

/** @returns {import("./cgroup-plan.mjs").CgroupView} */
function viewOfThisHost() {
  return { mounts: textOf("/proc/self/mounts"), controllers: textOf("/proc/cgroups"), read: textOf, isWritable };
}

/** @param {string} path */
function isWritable(path) {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
