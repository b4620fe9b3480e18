import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, rm, truncate } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findProgram } from "../../host/find-program.ts";
import type { OrphanVm, StartVmOptions, Vm, VmDriver } from "../vm/vm-driver.ts";
import { notAdopted, platformError } from "./driver-error.ts";
import { loadImages } from "./load-images.ts";
import { listAbandoned, markMachine } from "./machine-marks.ts";
import { SpawnedVm } from "./spawned-vm.ts";
import { vzArguments } from "./vz-arguments.ts";

const PROGRAM = "vfkit";
const CONTROL_SOCKET = "control.sock";
const ENGINE_SOCKET = "engine.sock";

export interface VzDriverOptions {
  /** Holds one directory for each machine. */
  readonly directory: string;
  /** A bootable raw disk that serves Docker Engine on vsock port 2375. */
  readonly disk: string | undefined;
  readonly archives: readonly string[];
  readonly platform?: NodeJS.Platform | undefined;
}

/** Runs machines on Apple's Virtualization framework through vfkit. They end with the program that started them. */
export class VzDriver implements VmDriver {
  readonly name = "vz";
  readonly #options: VzDriverOptions;
  readonly #platform: NodeJS.Platform;

  constructor(options: VzDriverOptions) {
    this.#options = options;
    this.#platform = options.platform ?? process.platform;
  }

  async probe(): Promise<ProviderStatus> {
    try {
      const { program } = this.#requireHost();
      return { available: true, detail: `a machine for each project: ${program}` };
    } catch (error) {
      const { message, hint } = SandboxError.from(error);
      return { available: false, reason: message, hint: hint ?? "" };
    }
  }

  async start(projectId: string, { resources, signal }: StartVmOptions): Promise<Vm> {
    const { program, disk: base } = this.#requireHost();
    signal.throwIfAborted();
    const id = randomUUID();
    const directory = join(this.#options.directory, id);
    const inside = (name: string) => join(directory, name);
    const [disk, engineSocket, consoleLog] = [inside("disk.img"), inside(ENGINE_SOCKET), inside("console.log")];
    await markMachine(directory, projectId);
    try {
      // A copy-on-write clone where the filesystem supports it.
      await copyFile(base, disk, constants.COPYFILE_FICLONE);
      await grow(disk, resources.diskMib);
      const controlSocket = inside(CONTROL_SOCKET);
      const variableStore = inside("efi");
      const args = vzArguments({ ...resources, disk, variableStore, engineSocket, controlSocket, consoleLog });
      await using log = await open(inside("vfkit.log"), "a", 0o600);
      const child = spawn(program, args, { stdio: ["ignore", log.fd, log.fd] });
      const engineUrl = `unix://${engineSocket}`;
      const vm = new SpawnedVm({
        ...{ id, projectId, directory, engineUrl, consoleLog, child },
        remove: async () => {
          child.kill("SIGKILL");
          await vm.exited;
          await rm(directory, { recursive: true, force: true });
        },
      });
      await vm.untilAnswering(signal).catch(async (error: unknown) => {
        await vm.destroy();
        throw error;
      });
      await loadImages(engineUrl, { archives: this.#options.archives, signal });
      return vm;
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  listOrphans(): Promise<readonly OrphanVm[]> {
    return listAbandoned(this.#options.directory);
  }

  adopt(id: string): Promise<Vm> {
    return Promise.reject(notAdopted(this.name, id));
  }

  async remove(id: string): Promise<void> {
    const directory = join(this.#options.directory, id);
    await hardStop(join(directory, CONTROL_SOCKET));
    await rm(directory, { recursive: true, force: true });
  }

  #requireHost(): { readonly program: string; readonly disk: string } {
    if (this.#platform !== "darwin") throw platformError(this.name, "darwin", this.#platform);
    const program = findProgram(PROGRAM);
    if (program === undefined) {
      throw new SandboxError("vfkit_missing", {
        message: "vfkit, which runs the virtual machines, is not installed",
        hint: "install it with `brew install vfkit`",
      });
    }
    const { disk } = this.#options;
    if (disk !== undefined) return { program, disk };
    throw new SandboxError("image_missing", {
      message: "vmDocker.machineImage is not set: machines with a container engine need a disk image",
      hint: "set vmDocker.machineImage to a disk as docs/vm-docker.md describes it",
    });
  }
}

async function grow(path: string, sizeMib: number): Promise<void> {
  await using file = await open(path, "r+");
  const { size } = await file.stat();
  if (size < sizeMib * 2 ** 20) await truncate(path, sizeMib * 2 ** 20);
}

/** Stops the vfkit that listens on the socket; ignores one that has ended. */
function hardStop(socketPath: string): Promise<void> {
  const body = JSON.stringify({ state: "HardStop" });
  return new Promise((resolve) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const call = request({ socketPath, path: "/vm/state", method: "POST", headers }, (answer) => {
      answer.resume().once("close", () => resolve());
    });
    call.once("error", () => resolve());
    call.end(body);
  });
}
