import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandError } from "./command.mjs";
import { cacheDirectory, hasDebianPackages, publish, withPackages } from "./debian-packages.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { installCommand } from "./host.mjs";
import { withLock } from "./lock.mjs";

/**
 * QEMU's program, where its firmware is, and the environment it needs.
 * @typedef {object} Qemu
 * @property {string} program
 * @property {readonly string[]} firmware directories for -L; none where QEMU knows its own
 * @property {Record<string, string>} env
 */

const root = join(cacheDirectory, "qemu");
const NAME = "qemu-system-x86_64";
const INSTALL = {
  debian: "qemu-system-x86",
  fedora: "qemu-system-x86-core",
  arch: "qemu-system-x86",
  suse: "qemu-x86",
};

/** @returns {import("./plan.d.ts").Plan} */
export function planQemu() {
  const found = findQemu();
  if (found !== undefined) return { detail: found.program, problems: [] };
  if (hasDebianPackages()) return { detail: root, problems: [], work: async () => void (await provideQemu()) };
  return { detail: "missing", problems: [{ missing: "QEMU, to run machines with.", remedy: installCommand(INSTALL) }] };
}

/**
 * The machine's own QEMU, or Debian's unpacked into the cache.
 * @returns {Promise<Qemu>}
 */
export async function provideQemu() {
  const found = findQemu();
  if (found !== undefined) return found;
  if (!hasDebianPackages()) throw new CommandError(`QEMU is not there. ${installCommand(INSTALL)}`);
  const onWait = () => console.error("  ▸ Waiting for somebody else to unpack QEMU");
  await withLock("qemu", async () => (existsSync(root) ? undefined : unpack()), onWait);
  const unpacked = findUnpacked();
  if (unpacked !== undefined) return unpacked;
  throw new CommandError(`${root} has no whole QEMU: remove it, and run the same command again.`);
}

/** @returns {Qemu | undefined} */
function findQemu() {
  const program = findProgram(NAME);
  return program === undefined ? findUnpacked() : { program, firmware: [], env: {} };
}

/** @returns {Qemu | undefined} */
function findUnpacked() {
  const program = join(root, "usr/bin", NAME);
  if (!isProgram(program)) return undefined;
  const libraries = readdirSync(join(root, "usr/lib"), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.so(\.|$)/.test(name) && !name.includes("/qemu/"))
    .map((name) => dirname(join(root, "usr/lib", name)));
  const env = { LD_LIBRARY_PATH: [...new Set(libraries)].join(":") };
  const firmware = ["qemu", "seabios"].map((name) => join(root, "usr/share", name));
  return { program, firmware, env };
}

function unpack() {
  const title = "Downloading Debian's QEMU (once; nothing is installed)";
  const request = { title, names: ["qemu-system-x86"], dependencies: /** @type {const} */ ("missing") };
  return withPackages(request, async (unpacked) => publish(unpacked, root));
}
