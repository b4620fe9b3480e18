import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { copyFile, open, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { findProgram } from "../../host/find-program.ts";
import { requestSocket } from "../../host/socket-request.ts";
import type { StartVmOptions, Vm } from "../vm/vm-driver.ts";
import { SpawnedVm } from "./spawned-vm.ts";
import { SpawnedVmDriver } from "./spawned-vm-driver.ts";
import { vzArguments } from "./vz-arguments.ts";

const PROGRAM = "vfkit";
const CONTROL_SOCKET = "control.sock";
const ENGINE_SOCKET = "engine.sock";

interface VzHost {
  readonly program: string;
  /** A bootable raw disk that serves Docker Engine on vsock port 2375. */
  readonly disk: string;
}

/** Runs machines on Apple's Virtualization framework through vfkit. */
export class VzDriver extends SpawnedVmDriver<VzHost> {
  readonly name = "vz";

  protected async describe(): Promise<string> {
    return `a machine for each project: ${this.requireHost().program}`;
  }

  protected async launch(
    { program, disk: base }: VzHost,
    machine: Pick<Vm, "id" | "projectId" | "directory">,
    { resources }: StartVmOptions,
  ): Promise<SpawnedVm> {
    const { directory } = machine;
    const inside = (name: string) => join(directory, name);
    const [disk, engineSocket, consoleLog] = [inside("disk.img"), inside(ENGINE_SOCKET), inside("console.log")];
    // A copy-on-write clone where the filesystem supports it.
    await copyFile(base, disk, constants.COPYFILE_FICLONE);
    await grow(disk, resources.diskMib);
    const controlSocket = inside(CONTROL_SOCKET);
    const variableStore = inside("efi");
    const args = vzArguments({ ...resources, disk, variableStore, engineSocket, controlSocket, consoleLog });
    await using log = await open(inside("vfkit.log"), "a", 0o600);
    const child = spawn(program, args, { stdio: ["ignore", log.fd, log.fd] });
    const vm = new SpawnedVm({
      ...{ ...machine, engineUrl: `unix://${engineSocket}`, consoleLog, child },
      remove: async () => {
        child.kill("SIGKILL");
        await vm.exited;
        await rm(directory, { recursive: true, force: true });
      },
    });
    return vm;
  }

  async remove(id: string): Promise<void> {
    const directory = join(this.directory, id);
    await hardStop(join(directory, CONTROL_SOCKET));
    await rm(directory, { recursive: true, force: true });
  }

  protected requireHost(): VzHost {
    this.requirePlatform("darwin");
    const program = findProgram(PROGRAM);
    if (program === undefined) {
      throw new SandboxError("vfkit_missing", {
        message: "vfkit, which runs the virtual machines, is not installed",
        hint: "install it with `brew install vfkit`",
      });
    }
    return { program, disk: this.requireImage("a disk image", "a disk") };
  }
}

async function grow(path: string, sizeMib: number): Promise<void> {
  await using file = await open(path, "r+");
  const { size } = await file.stat();
  if (size < sizeMib * 2 ** 20) await truncate(path, sizeMib * 2 ** 20);
}

/** Stops the vfkit that listens on the socket; ignores one that has ended. */
async function hardStop(socketPath: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ state: "HardStop" });
  await requestSocket({ socketPath, path: "/vm/state", method: "POST", headers, body }).catch(() => {});
}
