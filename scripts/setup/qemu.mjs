import { existsSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "./command.mjs";
import { cacheDirectory, hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";

const root = join(cacheDirectory, "qemu");
const unpacked = join(root, "usr/bin/qemu-system-x86_64");
const INSTALL = {
  debian: "qemu-system-x86",
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
  const onWait = () => console.error("  ▸ Waiting for somebody else to unpack QEMU");
  await withLock("qemu", async () => (existsSync(root) ? undefined : unpack()), onWait);
  if (isProgram(unpacked)) return;
  throw new CommandError(`${root} has no whole QEMU: remove it, and run the same command again.`);
}

function unpack() {
  const title = "Downloading Debian's QEMU (once; nothing is installed)";
  const request = { title, names: ["qemu-system-x86"], dependencies: /** @type {const} */ ("missing") };
  return withPackages(request, async (files) => publish(files, root));
}
