import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { hasDebianPackages } from "./debian-packages.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { unpackedRoot, unpackPackages } from "./unpacked-packages.mjs";

const PACKAGE = "qemu-system-x86";
const root = unpackedRoot(PACKAGE);
const unpacked = join(root, "usr/bin/qemu-system-x86_64");
const INSTALL = {
  debian: PACKAGE,
  fedora: "qemu-system-x86-core",
  arch: "qemu-system-x86",
  suse: "qemu-x86",
};

/**
 * In order of preference: the configured program, the machine's own, Debian's unpacked into the cache.
 * @returns {import("./plan.d.ts").Plan}
 */
export function planQemu() {
  const configured = process.env["SANDPIPER_QEMU"];
  if (configured !== undefined && configured !== "") {
    if (isProgram(configured)) return { detail: configured, problems: [] };
    const remedy = "Run: unset SANDPIPER_QEMU\nor set it to the absolute path of a qemu-system-x86_64.";
    return { detail: configured, problems: [{ missing: `A program at SANDPIPER_QEMU=${configured}.`, remedy }] };
  }
  const installed = findProgram("qemu-system-x86_64");
  if (installed !== undefined) return { detail: installed, problems: [] };
  if (isProgram(unpacked)) return { detail: unpacked, problems: [] };
  if (hasDebianPackages()) return { detail: unpacked, problems: [], work };
  const missing = "QEMU, to run virtual machines with.";
  return { detail: "missing", problems: [{ missing, remedy: installCommand(INSTALL) }] };
}

async function work() {
  await unpackPackages(PACKAGE, () => [PACKAGE]);
  if (isProgram(unpacked)) return;
  throw new CommandError(`${root} has no whole QEMU: remove it, and run the same command again.`);
}
