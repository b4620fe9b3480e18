import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, rm, truncate } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import {
  type OrphanVm,
  type ProviderStatus,
  SandboxError,
  type StartVmOptions,
  type Vm,
  type VmDriver,
} from "@sandpiper/core";
import { findProgram } from "../host/find-program.ts";
import { loadImages } from "./load-images.ts";
import { listAbandoned, markMachine } from "./machine-marks.ts";
import { notAdopted } from "./not-adopted.ts";
import { platformError } from "./platform-error.ts";
import { SpawnedVm } from "./spawned-vm.ts";
import { vzArguments } from "./vz-arguments.ts";

const PROGRAM = "vfkit";
const CONTROL_SOCKET = "control.sock";
const ENGINE_SOCKET = "engine.sock";

export interface VzDriverOptions {
  /** Where the machines are, one directory each. */
  readonly directory: string;
  /** A raw disk that boots by itself and serves Docker Engine on vsock port 2375. */
  readonly disk: string | undefined;
  readonly archives: readonly string[];
  readonly platform?: NodeJS.Platform | undefined;
}

/** Machines of Apple's Virtualization framework, by way of vfkit. They end with the program that started them. */
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
      // Shares what it has in common with the base where the filesystem can.
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
      throw new SandboxError("failed_precondition", {
        reason: "vfkit_missing",
        message: "there is no vfkit on this machine, which runs virtual machines",
        hint: "install it: brew install vfkit",
      });
    }
    const { disk } = this.#options;
    if (disk !== undefined) return { program, disk };
    throw new SandboxError("failed_precondition", {
      reason: "image_missing",
      message: "there is no disk for machines with a container engine",
      hint: "name one in vmDocker.machineImage; docs/vm-docker.md says what has to be on it",
    });
  }
}

async function grow(path: string, sizeMib: number): Promise<void> {
  await using file = await open(path, "r+");
  const { size } = await file.stat();
  if (size < sizeMib * 2 ** 20) await truncate(path, sizeMib * 2 ** 20);
}

/** Asks the vfkit that listens there to end; one that is gone has ended. */
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
