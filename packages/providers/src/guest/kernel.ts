import { createHash } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { access, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { cacheDirectory } from "../host/cache-directory.ts";
import { missing } from "../host/host-requirements.ts";
import { publishFile } from "../host/publish-file.ts";
import { remembered } from "../host/remembered.ts";
import { type ArchiveEntry, kernelArchive } from "./kernel-archive.ts";

/** A kernel and its modules in load order. */
export interface Kernel {
  readonly path: string;
  readonly version: string;
  readonly modules: readonly string[];
}

/** The last of the modules that redirect a machine's network. */
const NETWORK_MODULE = "xt_REDIRECT";

/** Why machines with this kernel have no network, for people; empty if they have one. */
export function networkProblem({ modules }: Pick<Kernel, "modules">): string {
  if (modules.some((path) => path.endsWith(`-${NETWORK_MODULE}.ko`))) return "";
  return "; machines have no network, because the modules of the kernel are those of an earlier release: run `npm run setup kernel`";
}

/** The newest kernel that set-up downloaded. */
export async function findKernel(environment: NodeJS.ProcessEnv = process.env): Promise<Kernel> {
  const root = join(cacheDirectory(environment), "kernel");
  const versions = (await namesIn(root)).filter((name) => existsSync(join(root, name, "vmlinuz")));
  const version = versions.sort((one, other) => one.localeCompare(other, "en", { numeric: true })).at(-1);
  if (version === undefined) {
    throw missing(
      "kernel_missing",
      `no kernel for virtual machines found in ${root}`,
      "run `npm run setup kernel` in Sandpiper's directory, which downloads Debian's",
    );
  }
  const modules = join(root, version, "modules");
  const names = (await namesIn(modules)).sort();
  return { path: join(root, version, "vmlinuz"), version, modules: names.map((name) => join(modules, name)) };
}

/** The files that a machine boots from. */
export interface GuestKernel {
  readonly path: string;
  readonly initramfs: string;
  readonly commandLine: string;
  /** The smallest file that QEMU accepts as this kernel, for a machine that has the kernel in its saved memory. */
  readonly stub: string;
  /** The digest of kernel, initramfs and command line. */
  readonly sha: string;
}

export interface GuestKernelOptions {
  /** Holds the initramfs, which is made once for each agent and kernel. */
  readonly directory: string;
  readonly kernel: Kernel;
  /** The agent's binary, which is the machine's first process. */
  readonly agent: string;
  /** An initramfs whose content replaces the modules: the agent is added to it as the first process. */
  readonly initrd?: string | undefined;
}

/** Larger than the loader at the start of a kernel's file. */
const STUB_BYTES = 64 * 1024;
const ALIGNMENT = 512;

export async function guestKernel(options: GuestKernelOptions): Promise<GuestKernel> {
  const { directory, kernel, agent, initrd } = options;
  const files = [kernel.path, agent, ...(initrd === undefined ? kernel.modules : [initrd])];
  const fact = `guest kernel ${kernelCommandLine}`;
  await requireReadable(kernel.path, initrd);
  const sha = await remembered({ directory: join(directory, "known"), fact, files }, () => build(options));
  const made = bootFiles(directory, sha);
  if (!existsSync(made.initramfs) || !existsSync(made.stub)) await build(options);
  return { path: kernel.path, commandLine: kernelCommandLine, sha, ...made };
}

/** Reads all files completely, which takes a moment; returns their digest. */
async function build({ directory, kernel, agent, initrd }: GuestKernelOptions): Promise<string> {
  const own = kernelArchive(await initramfsEntries(initrd === undefined ? kernel.modules : [], agent));
  const archive = initrd === undefined ? own : Buffer.concat([padded(await readFile(initrd)), own]);
  const kernelBytes = await readFile(kernel.path);
  const sha = createHash("sha256").update(archive).update(kernelBytes).update(kernelCommandLine).digest("hex");
  const made = bootFiles(directory, sha);
  await publish(made.initramfs, archive);
  await publish(made.stub, stubOf(kernelBytes));
  return sha;
}

async function requireReadable(kernel: string, initrd: string | undefined): Promise<void> {
  for (const [what, path] of [
    ["kernel", kernel] as const,
    ...(initrd === undefined ? [] : [["initrd", initrd] as const]),
  ]) {
    await access(path, constants.R_OK).catch((error: Error) => {
      throw new SandboxError("no_such_kernel", {
        message: `the ${what} ${JSON.stringify(path)} cannot be read: ${error.message}`,
      });
    });
  }
}

/** The kernel unpacks archives one after another, and ignores zeros between them. */
function padded(archive: Buffer): Buffer {
  return Buffer.concat([archive, Buffer.alloc((ALIGNMENT - (archive.length % ALIGNMENT)) % ALIGNMENT)]);
}

function stubOf(kernel: Buffer): Uint8Array {
  const isBzImage = kernel.toString("latin1", 0x202, 0x206) === "HdrS";
  return isBzImage ? kernel.subarray(0, STUB_BYTES) : kernel;
}

function bootFiles(directory: string, sha: string): Pick<GuestKernel, "initramfs" | "stub"> {
  const path = (name: string) => join(directory, `${name}-${sha.slice(0, 16)}`);
  return { initramfs: path("initramfs"), stub: path("stub") };
}

/**
 * The kernel's arguments and, after the dashes, the agent's. Mitigations of speculative execution are off inside,
 * because a machine has one tenant; the host's kernel protects machines from each other.
 */
export const kernelCommandLine = [
  ...["console=ttyS0", "quiet", "loglevel=4", "panic=-1", "tsc=reliable", "mitigations=off", "random.trust_cpu=on"],
  ...["no_timer_check", "noreplace-smp", "pci=lastbus=0", "8250.nr_uarts=1", "cryptomgr.notests"],
  // Features that sandboxes do not use and that slow every process down.
  ...["lsm=", "psi=0", "audit=0", "randomize_kstack_offset=off"],
  ...["--", "--init", "--channel", "serial:/dev/virtio-ports/agent", "--default-user", "user"],
].join(" ");

/** The kernel opens the console for its first process, which needs valid standard descriptors. */
async function initramfsEntries(modules: readonly string[], agent: string): Promise<ArchiveEntry[]> {
  const files = await Promise.all(
    modules.map(async (path) => ({
      kind: "file" as const,
      path: `modules/${basename(path)}`,
      bytes: await readFile(path),
    })),
  );
  return [
    ...["dev", "modules"].map((path) => ({ kind: "directory" as const, path })),
    { kind: "device", path: "dev/console", major: 5, minor: 1 },
    { kind: "device", path: "dev/null", major: 1, minor: 3 },
    { kind: "file", path: "init", bytes: await readFile(agent) },
    ...files,
  ];
}

async function publish(path: string, bytes: Uint8Array): Promise<void> {
  if (!existsSync(path)) await publishFile(path, (draft) => writeFile(draft, bytes, { mode: 0o600 }));
}

function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}
