import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { type ProgramResult, runProgram } from "../host/run-program.ts";
import { idMappings, idMapText } from "./id-mappings.ts";
import { IMAGE_MOUNT_POINT } from "./mount.ts";

const DELETE_TIMEOUT_MS = 10_000;
const MAX_EXPLANATION_CHARACTERS = 2000;

/**
 * gVisor copies addresses, routes and NAT rules from the namespace that the launcher made. The gofer, which has no
 * capability there, shares it.
 */
const REDIRECTED = ["--network=sandbox", "--reproduce-nat", "--gofer-network-namespace=host"];
/** A namespace that gofers share would need a mount on the host. */
const LOOPBACK_ONLY = ["--network=none", "--gofer-network-namespace=new"];

/** The sandbox that a command starts. */
export interface Launch {
  readonly spec: InstanceSpec;
  /** Has the sandbox's config.json. */
  readonly directory: string;
  /** The image's directory. */
  readonly root: string;
}

export interface RunscOptions {
  readonly runsc: string;
  readonly launcher: string;
  /** The directory of runsc's own state. */
  readonly root: string;
  /** False starts sandboxes that have only loopback. */
  readonly hasNetwork: boolean;
}

interface Command {
  readonly command: readonly string[];
  /** False for a command that uses a sandbox that exists. */
  readonly startsSandbox: boolean;
  readonly signal: AbortSignal;
}

/** The commands of runsc that the provider uses. */
export class Runsc {
  readonly #options: RunscOptions;

  constructor(options: RunscOptions) {
    this.#options = options;
  }

  run(launch: Launch, signal: AbortSignal): Promise<ProgramResult> {
    return this.#launch(launch, { command: ["run", "--detach"], startsSandbox: true, signal });
  }

  /** Makes a sandbox without processes, for `restore`. */
  create(launch: Launch, signal: AbortSignal): Promise<ProgramResult> {
    return this.#launch(launch, { command: ["create"], startsSandbox: true, signal });
  }

  /** The sandbox may still read memory from the image when this returns, but the image's files can be removed. */
  restore(launch: Launch, image: string, signal: AbortSignal): Promise<ProgramResult> {
    const command = ["restore", "--detach", "--background", "--image-path", image];
    return this.#launch(launch, { command, startsSandbox: false, signal });
  }

  /** Saves a sandbox as files in the directory `image`. */
  checkpoint(
    id: SandboxId,
    directory: string,
    { image, keepsRunning }: { readonly image: string; readonly keepsRunning: boolean },
  ): Promise<ProgramResult> {
    const { runsc, root } = this.#options;
    const flags = [`--root=${root}`, `--log=${join(directory, "runsc.log")}`];
    const leave = keepsRunning ? ["--leave-running"] : [];
    return runProgram([runsc, ...flags, "checkpoint", "--image-path", image, ...leave, id], { keepOutput: false });
  }

  /** Ends a sandbox and removes runsc's record of it; accepts an unknown id. */
  delete(id: SandboxId): Promise<ProgramResult> {
    const { runsc, root } = this.#options;
    return runProgram([runsc, `--root=${root}`, "delete", "--force", id], {
      timeoutMs: DELETE_TIMEOUT_MS,
      keepOutput: false,
    });
  }

  /** Removes runsc's record of a sandbox without processes. */
  async forget(id: SandboxId): Promise<void> {
    const { root } = this.#options;
    const names = await readdir(root).catch(() => []);
    const files = names.filter((name) => name.includes(id)).map((name) => join(root, name));
    // If the path of the state directory is too long for a socket, runsc uses another directory.
    const sockets = ["/var/run", "/run", "/tmp"].map((directory) => join(directory, `runsc-${id}.sock`));
    await Promise.all([...files, ...sockets].map((path) => rm(path, { force: true })));
  }

  /** Ends with this process; see `sandpiper-launch`. */
  #launch({ spec, directory, root }: Launch, { command, startsSandbox, signal }: Command): Promise<ProgramResult> {
    const { launcher, runsc, hasNetwork } = this.#options;
    const mapped = ["--root", root, IMAGE_MOUNT_POINT, idMapText(idMappings(spec.id))];
    // A restore reads the network of the sandbox that `create` has started.
    const network = hasNetwork && startsSandbox ? ["--network"] : [];
    const flags = [
      ...this.#flags(directory),
      // All writes go to one unnamed file of limited size, which disappears with the sandbox.
      `--overlay2=root:dir=${directory},size=${spec.diskMib}m`,
    ];
    const words = [runsc, ...flags, ...command, "--bundle", directory, spec.id];
    return runProgram([launcher, ...mapped, ...network, String(process.pid), directory, ...words], {
      signal,
      keepOutput: false,
    });
  }

  #flags(directory: string): string[] {
    return [
      `--root=${this.#options.root}`,
      `--log=${join(directory, "runsc.log")}`,
      `--panic-log=${join(directory, "panic.log")}`,
      "--platform=systrap",
      ...(this.#options.hasNetwork ? REDIRECTED : LOOPBACK_ONLY),
      // Advice about the host's settings, which no user would see.
      "--host-settings=ignore",
      // A sandbox may cache the machine's programs, because they are read-only.
      "--file-access-mounts=exclusive",
      // Root inside is not root on the host, so set-uid programs are harmless.
      "--allow-suid",
      "--oci-seccomp",
      // A sandbox that is restored under another id has another id mapping, and one of an earlier release other settings.
      "--restore-spec-validation=warning",
    ];
  }
}

/** The error messages of runsc and of the launcher, from an instance's directory. */
export async function explain(directory: string): Promise<string> {
  const logs = ["launch.log", "runsc.log", "panic.log"].map((name) => readFile(join(directory, name), "utf8"));
  const texts = await Promise.all(logs.map((log) => log.catch(() => "")));
  return texts.join("\n").trim().slice(0, MAX_EXPLANATION_CHARACTERS);
}
