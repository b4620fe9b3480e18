// Brings a fresh clone to the point where everything runs. Plain JavaScript on node: built-ins alone, because it runs
// before any package is installed and on a Node older than the one the packages bring.
import { planAgent } from "./setup/agent.mjs";
import { planCgroups } from "./setup/cgroups.mjs";
import { planCluster } from "./setup/cluster.mjs";
import { planDocker } from "./setup/docker.mjs";
import { findHostProblems } from "./setup/host.mjs";
import { planDockerImage, planImage, planNodeImage } from "./setup/images.mjs";
import { planKernel } from "./setup/kernel.mjs";
import { planNetwork } from "./setup/network.mjs";
import { planPackages } from "./setup/packages.mjs";
import { announce } from "./setup/plan.mjs";
import { planPodman } from "./setup/podman.mjs";
import { isReporting, report } from "./setup/progress.mjs";
import { planPython } from "./setup/python.mjs";
import { planQemu } from "./setup/qemu.mjs";
import { planRunsc } from "./setup/runsc.mjs";
import { planServers } from "./setup/servers.mjs";
import { explain } from "./setup/setup-error.mjs";
import { planSlirp } from "./setup/slirp.mjs";

/** Each function checks without changing anything, and returns the work to do. */
const steps = {
  packages: planPackages,
  agent: planAgent,
  runsc: planRunsc,
  cgroups: planCgroups,
  cluster: planCluster,
  network: planNetwork,
  slirp: planSlirp,
  docker: planDocker,
  podman: planPodman,
  servers: planServers,
  python: planPython,
  qemu: planQemu,
  kernel: planKernel,
  image: planImage,
  "docker-image": planDockerImage,
  "node-image": planNodeImage,
};
/** The steps that `npm start` needs; tests and virtual machines name the others. */
const defaultSteps = ["packages", "agent", "runsc", "cgroups"];

const isQuiet = isReporting || process.argv.includes("--quiet");
const isTracing = process.argv.includes("--trace");
const chosen = process.argv.slice(2).filter((argument) => !["--quiet", "--report", "--trace"].includes(argument));
const names = chosen.length > 0 ? chosen : defaultSteps;
let currentStep = "host";

process.on("uncaughtException", fail);
await setUp().catch(fail);

async function setUp() {
  const startedAtMs = performance.now();
  const unknown = names.filter((name) => !Object.hasOwn(steps, name));
  if (unknown.length > 0) {
    stop(`Unknown set-up step ${unknown.join(", ")}.\nThe steps are: ${Object.keys(steps).join(", ")}.`);
  }
  const hostProblems = findHostProblems({ needsRoot: names.includes("runsc") || names.includes("cgroups") });
  if (hostProblems.length > 0) stop(hostProblems);

  const plans = [];
  for (const [name, plan] of Object.entries(steps)) {
    if (!names.includes(name)) continue;
    currentStep = name;
    plans.push({ name, ...plan() });
  }
  // Name all that is missing at once, before spending minutes on the steps that would work.
  const problems = plans.flatMap((plan) => plan.problems);
  if (problems.length > 0) stop(problems);

  const announcement = announce(plans);
  if (announcement !== undefined && !isReporting) console.error(announcement);
  for (const plan of plans) {
    currentStep = plan.name;
    await plan.work?.();
  }
  if (!isQuiet) {
    const states = plans.map((plan) => `${plan.name}: ${plan.detail}`).join("\n  ");
    console.error(`Set-up is complete (${Math.round(performance.now() - startedAtMs)} ms).\n  ${states}`);
  }
}

/** @param {unknown} error */
function fail(error) {
  if (isTracing) console.error(error);
  stop(explain(error, currentStep));
}

/**
 * Ends set-up with what is missing, or with what failed.
 * @param {string | readonly import("./setup/plan.mjs").Problem[]} reason
 * @returns {never}
 */
function stop(reason) {
  if (isReporting) report(typeof reason === "string" ? { error: reason } : { problems: reason });
  else
    console.error(typeof reason === "string" ? `\n${reason}` : `Sandpiper cannot be set up yet:\n\n${list(reason)}\n`);
  process.exit(1);
}

/** @param {readonly import("./setup/plan.mjs").Problem[]} problems */
function list(problems) {
  return problems.map(({ missing, remedy }) => `  ✗ ${missing}\n    ${remedy.replaceAll("\n", "\n    ")}`).join("\n\n");
}
