// Brings a fresh clone to the point where everything runs. Plain JavaScript on node: built-ins alone, because it runs
// before any package is installed and on a Node older than the one the packages bring.
import { planAgent } from "./setup/agent.mjs";
import { planCgroups } from "./setup/cgroups.mjs";
import { planCluster } from "./setup/cluster.mjs";
import { CommandError } from "./setup/command.mjs";
import { planDocker } from "./setup/docker.mjs";
import { findHostProblems } from "./setup/host.mjs";
import { planImage } from "./setup/image.mjs";
import { planDockerImage } from "./setup/image-docker.mjs";
import { planKernel } from "./setup/kernel.mjs";
import { planPackages } from "./setup/packages.mjs";
import { planPodman } from "./setup/podman.mjs";
import { planQemu } from "./setup/qemu.mjs";
import { isReporting, reportFailure } from "./setup/report.mjs";
import { planRunsc } from "./setup/runsc.mjs";
import { planServers } from "./setup/servers.mjs";

/** Each step looks without changing anything, and hands back what has to be done. */
const steps = {
  packages: planPackages,
  agent: planAgent,
  runsc: planRunsc,
  cgroups: planCgroups,
  cluster: planCluster,
  docker: planDocker,
  podman: planPodman,
  servers: planServers,
  qemu: planQemu,
  kernel: planKernel,
  image: planImage,
  "docker-image": planDockerImage,
};
/** Done when they are named: only tests need the first four, and only virtual machines the others. */
const namedSteps = [...["cluster", "docker", "podman", "servers"], ...["qemu", "kernel", "image", "docker-image"]];

const isQuiet = isReporting || process.argv.includes("--quiet");
const chosen = process.argv.slice(2).filter((argument) => argument !== "--quiet" && argument !== "--report");
const unknown = chosen.filter((name) => !Object.hasOwn(steps, name));
if (unknown.length > 0) {
  console.error(`Set-up has no step ${unknown.join(", ")}. Its steps: ${Object.keys(steps).join(", ")}.`);
  process.exit(1);
}
const names = chosen.length > 0 ? chosen : Object.keys(steps).filter((name) => !namedSteps.includes(name));

try {
  await setUp();
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  if (isReporting) reportFailure(error.message);
  else console.error(`\n${error.message}`);
  process.exit(1);
}

async function setUp() {
  const startedAtMs = performance.now();
  const needsRoot = names.includes("runsc") || names.includes("cgroups");
  const hostProblems = findHostProblems({ needsRoot });
  if (hostProblems.length > 0) stop(hostProblems);

  const plans = [];
  for (const [name, plan] of Object.entries(steps)) {
    if (names.includes(name)) plans.push({ name, ...plan() });
  }
  // All that is missing is named at once, before minutes go into the steps that would work.
  const problems = plans.flatMap((plan) => plan.problems);
  if (problems.length > 0) stop(problems);

  for (const plan of plans) await plan.work?.();
  if (!isQuiet) {
    const states = plans.map((plan) => `${plan.name}: ${plan.detail}`).join("\n  ");
    console.error(`Set-up is complete (${Math.round(performance.now() - startedAtMs)} ms).\n  ${states}`);
  }
}

/** @param {import("./setup/plan.d.ts").Problem[]} problems */
function stop(problems) {
  if (isReporting) {
    reportFailure(problems);
    process.exit(1);
  }
  const text = problems.map((problem) => `  ✗ ${problem.missing}\n    ${problem.remedy.replaceAll("\n", "\n    ")}`);
  console.error(`Sandpiper cannot be set up yet:\n\n${text.join("\n\n")}\n`);
  process.exit(1);
}
