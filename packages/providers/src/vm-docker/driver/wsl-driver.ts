import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import type { OrphanVm, StartVmOptions, Vm, VmDriver } from "../vm/vm-driver.ts";
import { notAdopted, platformError } from "./driver-error.ts";
import { EngineRelay } from "./engine-relay.ts";
import { loadImages } from "./load-images.ts";
import { listAbandoned, markMachine } from "./machine-marks.ts";
import { processTunnel } from "./process-tunnel.ts";
import { SpawnedVm } from "./spawned-vm.ts";
import { dialArguments, engineArguments, importArguments, unregisterArguments } from "./wsl-arguments.ts";

const PROGRAM = "wsl.exe";

export interface WslDriverOptions {
  /** Holds one directory with the disk of each machine. */
  readonly directory: string;
  /** A root filesystem archive with Docker Engine and socat. */
  readonly archive: string | undefined;
  readonly archives: readonly string[];
  readonly platform?: NodeJS.Platform | undefined;
}

/**
 * Runs machines as distributions of the Windows Subsystem for Linux. Windows runs all distributions in one virtual machine,
 * sized by .wslconfig. A virtual machine isolates projects from Windows; namespaces isolate them from each other.
 */
export class WslDriver implements VmDriver {
  readonly name = "wsl2";
  readonly #options: WslDriverOptions;
  readonly #platform: NodeJS.Platform;

  constructor(options: WslDriverOptions) {
    this.#options = options;
    this.#platform = options.platform ?? process.platform;
  }

  async probe(): Promise<ProviderStatus> {
    try {
      this.#requireHost();
      await run(["--status"]);
      return { available: true, detail: "a distribution of WSL 2 for each project" };
    } catch (error) {
      const { message, hint } = SandboxError.from(error);
      return { available: false, reason: message, hint: hint ?? "" };
    }
  }

  async start(projectId: string, { signal }: StartVmOptions): Promise<Vm> {
    const archive = this.#requireHost();
    signal.throwIfAborted();
    const id = randomUUID();
    const directory = join(this.#options.directory, id);
    await markMachine(directory, projectId);
    try {
      await run(importArguments(id, join(directory, "disk"), archive));
      const consoleLog = join(directory, "engine.log");
      await using log = await open(consoleLog, "a");
      const child = spawn(PROGRAM, engineArguments(id), { stdio: ["ignore", log.fd, log.fd], windowsHide: true });
      const relay = await EngineRelay.listen(`//?/pipe/sandpiper-${id}`, () => dialEngine(id));
      const engineUrl = `unix://${relay.path}`;
      const remove = async () => {
        await relay[Symbol.asyncDispose]();
        await this.remove(id);
      };
      const vm = new SpawnedVm({ id, projectId, directory, engineUrl, consoleLog, child, remove });
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
    // Fails when the distribution does not exist.
    await run(unregisterArguments(id)).catch(() => {});
    await rm(join(this.#options.directory, id), { recursive: true, force: true });
  }

  #requireHost(): string {
    if (this.#platform !== "win32") throw platformError(this.name, "win32", this.#platform);
    const { archive } = this.#options;
    if (archive !== undefined) return archive;
    throw new SandboxError("image_missing", {
      message: "vmDocker.machineImage is not set: machines with a container engine need an archive",
      hint: "set vmDocker.machineImage to an archive as docs/vm-docker.md describes it",
    });
  }
}

async function dialEngine(id: string) {
  const child = spawn(PROGRAM, dialArguments(id), { stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
  await once(child, "spawn");
  return processTunnel(child);
}

async function run(args: readonly string[]): Promise<Buffer> {
  const child: ChildProcess = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "ignore"], windowsHide: true });
  const pieces: Buffer[] = [];
  child.stdout?.on("data", (piece: Buffer) => pieces.push(piece));
  const [code] = await once(child, "close");
  if (code === 0) return Buffer.concat(pieces);
  throw new SandboxError("wsl_failed", {
    message: `wsl.exe ${args[0]} ended with exit code ${code}: ${Buffer.concat(pieces).toString("utf16le").trim()}`,
    hint: "check `wsl.exe --status`; install WSL 2 with `wsl.exe --install`",
  });
}
