import { planTool } from "./debian-tool.mjs";
import { findProgram, isProgram } from "./programs.mjs";

/** @type {import("./debian-tool.mjs").DebianTool} */
const tool = {
  name: "qemu-system-x86",
  title: "QEMU",
  purpose: "to run virtual machines.",
  packages: () => ["qemu-system-x86"],
  programs: ["usr/bin/qemu-system-x86_64"],
  install: { debian: "qemu-system-x86", fedora: "qemu-system-x86-core", arch: "qemu-system-x86", suse: "qemu-x86" },
  seconds: 15,
};

/**
 * In order of preference: the configured program, the machine's own, Debian's in the cache.
 * @returns {import("./plan.mjs").Plan}
 */
export function planQemu() {
  const configured = process.env["SANDPIPER_QEMU"];
  if (configured === undefined || configured === "") return planTool(tool, findProgram("qemu-system-x86_64"));
  if (isProgram(configured)) return { detail: configured, problems: [] };
  const remedy = "Run: unset SANDPIPER_QEMU\nor set it to the absolute path of a qemu-system-x86_64.";
  return { detail: configured, problems: [{ missing: `A program at SANDPIPER_QEMU=${configured}.`, remedy }] };
}
