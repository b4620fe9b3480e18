import { findGoProblem, goProgramPath, provideGoProgram } from "./go-program.mjs";
import { findProgram, isProgram, outputOf } from "./programs.mjs";
import { isRecentRunsc, runscRelease } from "./runsc-release.mjs";

const { version, moduleVersion, moduleSum } = runscRelease;

/** @type {import("./go-program.mjs").GoProgram} */
const runsc = {
  name: "runsc",
  title: `gVisor ${version}`,
  packagePath: "gvisor.dev/gvisor/runsc",
  version: moduleVersion,
  moduleSum,
  ldflags: `-X gvisor.dev/gvisor/runsc/version.version=${version}`,
  runs: (path) => isRecentRunsc(outputOf(path, ["--version"])),
};

/**
 * In order of preference: the configured binary, a recent one on the PATH, the cached build, a new build.
 * @returns {import("./plan.mjs").Plan}
 */
export function planRunsc() {
  const configured = process.env["SANDPIPER_RUNSC"];
  if (configured !== undefined && configured !== "") {
    if (isProgram(configured)) return { detail: configured, problems: [] };
    const remedy = "Run: unset SANDPIPER_RUNSC\nor set it to the absolute path of a runsc binary.";
    return { detail: configured, problems: [{ missing: `A program at SANDPIPER_RUNSC=${configured}.`, remedy }] };
  }
  const installed = findProgram("runsc");
  if (installed !== undefined && isRecentRunsc(outputOf(installed, ["--version"]))) {
    return { detail: installed, problems: [] };
  }
  const cached = goProgramPath(runsc);
  if (isProgram(cached)) return { detail: cached, problems: [] };
  const problems = findGoProblem(runsc.title).map(({ missing, remedy }) => ({
    missing,
    remedy: `${remedy}\n${otherRemedy}`,
  }));
  const announcement = { name: "gVisor", seconds: 80 };
  return { detail: cached, problems, announcement, work: async () => void (await provideGoProgram(runsc)) };
}

const otherRemedy = [
  `or, with an official runsc of release ${version} or newer (https://gvisor.dev/docs/user_guide/install/):`,
  "     export SANDPIPER_RUNSC=/path/to/runsc",
].join("\n");
