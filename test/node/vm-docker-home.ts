import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Clock, Provider, SandboxConfigOptions } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { DockerProvider } from "../../packages/providers/src/docker/provider.ts";
import { testImageArchive } from "../../packages/providers/src/docker/testing/test-image.ts";
import { cacheDirectory } from "../../packages/providers/src/host/cache-directory.ts";
import { QemuProvider } from "../../packages/providers/src/qemu/provider.ts";
import { ProjectDisks } from "../../packages/providers/src/vm-docker/disk/project-disks.ts";
import { MachineDriver, projectOf } from "../../packages/providers/src/vm-docker/driver/machine-driver.ts";
import { HostImages } from "../../packages/providers/src/vm-docker/image/host-images.ts";
import { MachineImages } from "../../packages/providers/src/vm-docker/image/machine-images.ts";
import { SavedArchives } from "../../packages/providers/src/vm-docker/image/saved-archives.ts";
import { VmDockerProvider } from "../../packages/providers/src/vm-docker/provider.ts";
import { ProjectVms } from "../../packages/providers/src/vm-docker/vm/project-vms.ts";

/** The same for every machine, so that all are clones of one. */
export const RESOURCES = { memoryMib: 768, vcpuCount: 2, diskMib: 2048 };

/** Also the same for every machine. */
export const VOLUMES_MIB = 512;

const PROGRAM = fileURLToPath(new URL("vm-docker-program.ts", import.meta.url));

interface LeftSandbox {
  readonly sandbox: SandboxId;
  readonly process: string;
}

/** Images that machines get from this host. */
export function machineImages(home: string, archives: readonly string[] = []): MachineImages {
  const host = new HostImages({ directory: join(home, "images"), maxBytes: 2 ** 30, maxImageBytes: 2 ** 30 });
  return new MachineImages({ host, archives: new SavedArchives(archives) });
}

export interface VmDockerParts {
  readonly provider: VmDockerProvider;
  readonly vms: ProjectVms;
  readonly machines: Provider;
}

/** A directory for projects' machines, with an image for their containers; disposing it removes all of them. */
export class VmDockerHome implements AsyncDisposable {
  readonly home: string;
  readonly archive: string;
  readonly image: string;
  readonly #parts: VmDockerParts[] = [];

  private constructor(home: string, archive: string, image: string) {
    this.home = home;
    this.archive = archive;
    this.image = image;
  }

  static async create(variant: "tiny" | "base" = "tiny"): Promise<VmDockerHome> {
    const home = await mkdtemp(join(tmpdir(), "sp-vm-"));
    await shareTemplates(join(home, "vm/qemu"));
    const { name, archive } = await testImageArchive({ variant });
    const path = join(home, "image.tar");
    await pipeline(archive, createWriteStream(path));
    return new VmDockerHome(home, path, name);
  }

  /** The configuration of a sandbox in a project's machine. */
  config(project: string): SandboxConfigOptions {
    return { memoryMib: 128, vcpuCount: 1, container: { project, image: this.image } };
  }

  /** The provider's parts as a new program creates them. */
  open(clock?: Clock): VmDockerParts {
    const directory = join(this.home, "vm");
    const disks = new ProjectDisks({ directory: join(directory, "projects"), sizeMib: VOLUMES_MIB });
    const machines = new QemuProvider({
      stateDirectory: directory,
      volumeDisk: (spec) => disks.plan(projectOf(spec)),
    });
    const driver = new MachineDriver({
      machines,
      directory: join(directory, "engines"),
      consoleLog: (id) => join(directory, "qemu/instances", id, "machine/console.log"),
      archives: [this.archive],
      disks,
    });
    const vms = new ProjectVms({ driver, resources: RESOURCES, clock });
    const provider = new VmDockerProvider({
      vms,
      probe: () => driver.probe(),
      images: machineImages(this.home, [this.archive]),
      defaultImage: this.image,
      workspaces: { require: async () => {} },
      disks,
      createEngineProvider: (vm, time) =>
        new DockerProvider({ stateDirectory: vm.directory, engineUrl: vm.engineUrl, clock: time, home: "machine" }),
    });
    const parts = { provider, vms, machines };
    this.#parts.push(parts);
    return parts;
  }

  /** Leaves a sandbox behind: a program creates it, starts a command in it and is killed. */
  async leaveSandbox(config: SandboxConfigOptions, command: string): Promise<LeftSandbox> {
    const { home, archive } = this;
    const args = [PROGRAM, JSON.stringify({ home, archive }), JSON.stringify(config), command];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "exit");
    try {
      const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended.then(endedByItself)]);
      return JSON.parse(line);
    } finally {
      child.kill("SIGKILL");
      await ended;
    }
  }

  /** Directories of machines and their engines on this host. */
  async left(): Promise<readonly string[]> {
    const below = async (name: string) => await readdir(join(this.home, "vm", name)).catch(() => []);
    return [...(await below("engines")), ...(await below("qemu/instances"))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { vms } of this.#parts) await vms.shutdown();
    const machines = new QemuProvider({ stateDirectory: join(this.home, "vm") });
    for (const { id } of await machines.list()) await machines.remove(id);
    await rm(this.home, { recursive: true });
  }
}

/** One machine boots for all test files and runs, and all others are clones of it: without KVM, a boot takes long. */
async function shareTemplates(directory: string): Promise<void> {
  const shared = join(cacheDirectory(), "test-templates");
  await mkdir(shared, { recursive: true, mode: 0o700 });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // Clones are linked to their template, which needs one filesystem.
  const [one, other] = await Promise.all([stat(shared), stat(directory)]);
  if (one.dev === other.dev) await symlink(shared, join(directory, "templates"));
}

function endedByItself(): never {
  throw new Error("the program exited before the test killed it");
}
