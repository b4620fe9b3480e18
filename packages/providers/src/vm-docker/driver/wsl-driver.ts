import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { Vm } from "../vm/vm-driver.ts";
import { processTunnel } from "./process-tunnel.ts";
import { Relay } from "./relay.ts";
import { SpawnedVm } from "./spawned-vm.ts";
import { SpawnedVmDriver } from "./spawned-vm-driver.ts";
import { dialArguments, engineArguments, importArguments, unregisterArguments } from "./wsl-arguments.ts";

const PROGRAM = "wsl.exe";

/**
 * Runs machines as distributions of the Windows Subsystem for Linux. Windows runs all distributions in one virtual machine,
 * sized by .wslconfig. A virtual machine isolates projects from Windows; namespaces isolate them from each other.
 */
export class WslDriver extends SpawnedVmDriver<string> {
  readonly name = "wsl2";

  protected async describe(): Promise<string> {
    this.requireHost();
    await run(["--status"]);
    return "a distribution of WSL 2 for each project";
  }

  protected async launch(archive: string, machine: Pick<Vm, "id" | "projectId" | "directory">): Promise<SpawnedVm> {
    const { id, directory } = machine;
    await run(importArguments(id, join(directory, "disk"), archive));
    const consoleLog = join(directory, "engine.log");
    await using log = await open(consoleLog, "a");
    const child = spawn(PROGRAM, engineArguments(id), { stdio: ["ignore", log.fd, log.fd], windowsHide: true });
    const pipe = `//?/pipe/sandpiper-${id}`;
    const relay = await Relay.listen({ path: pipe }, () => dialEngine(id));
    const remove = async () => {
      await relay[Symbol.asyncDispose]();
      await this.remove(id);
    };
    return new SpawnedVm({ ...machine, engineUrl: `unix://${pipe}`, consoleLog, child, remove });
  }

  async remove(id: string): Promise<void> {
    // Fails when the distribution does not exist.
    await run(unregisterArguments(id)).catch(() => {});
    await rm(join(this.directory, id), { recursive: true, force: true });
  }

  /** Returns an archive of a root filesystem with Docker Engine and socat. */
  protected requireHost(): string {
    this.requirePlatform("win32");
    return this.requireImage("an archive");
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
