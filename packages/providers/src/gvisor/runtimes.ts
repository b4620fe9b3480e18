import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CheckpointRequirements } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { cacheDirectory } from "../host/cache-directory.ts";
import { type FoundRunsc, runscBuild } from "../host/find-runsc.ts";
import type { InstanceStore } from "../host/instance-store.ts";
import { shared } from "../host/shared.ts";
import { KeptPrograms, type ProgramKind } from "./kept-programs.ts";
import { Runsc } from "./runsc.ts";

/** The file in an instance's directory that names its runtime. */
export const RUNTIME_FILE = "runtime.json";
const PREFIX = "runsc ";

/** The two programs that an instance depends on until it ends, and its checkpoints after that. */
export interface RuntimeName {
  /** What `runsc --version` prints: gVisor restores an image only with the build that saved it. */
  readonly runsc: string;
  /** A digest: saved memory refers to the agent's file. */
  readonly agent: string;
}

export interface Runtime extends RuntimeName {
  readonly commands: Runsc;
  readonly agentPath: string;
}

export interface KeptProgram {
  readonly kind: ProgramKind;
  readonly version: string;
}

export interface RuntimesOptions {
  /** Where versions are kept. */
  readonly directory: string;
  readonly installed: FoundRunsc;
  readonly agent: string;
  readonly launcher: string;
  /** The directory of runsc's own state. */
  readonly root: string;
  readonly hasNetwork: boolean;
  readonly store: InstanceStore;
}

/** The runtimes of this host: the installed one for new instances, and earlier ones for what depends on them. */
export class Runtimes {
  readonly #options: RuntimesOptions;
  readonly #kept: KeptPrograms;
  readonly #commands = new Map<string, Runsc>();
  /** Keeps the installed programs before the first instance depends on them. */
  readonly current = shared(() => this.#keepInstalled());

  constructor(options: RuntimesOptions) {
    this.#options = options;
    this.#kept = new KeptPrograms(options.directory);
  }

  /** The runtime that a running instance was started with. */
  async of(id: SandboxId): Promise<Runtime> {
    return await this.#closest(await this.nameOf(id));
  }

  /** The runtime that a checkpoint names, as far as this host has it. */
  async for(requirements: CheckpointRequirements): Promise<Runtime> {
    return await this.#closest(requirementsOf(requirements));
  }

  async nameOf(id: SandboxId): Promise<RuntimeName> {
    const text = await readFile(join(this.#options.store.directory(id), RUNTIME_FILE), "utf8").catch(() => undefined);
    // An instance of a version that did not record it runs the build that was installed then, which may still be.
    return text === undefined ? await this.current() : (JSON.parse(text) as RuntimeName);
  }

  async kept(): Promise<readonly KeptProgram[]> {
    const kinds = ["runsc", "agent"] as const;
    const lists = kinds.map(async (kind) => (await this.#kept.versions(kind)).map((version) => ({ kind, version })));
    return (await Promise.all(lists)).flat();
  }

  /** Keeps a runsc; any other program counts as an agent. */
  async add(path: string): Promise<KeptProgram> {
    const build = await runscBuild(path);
    const kind = build === undefined ? "agent" : "runsc";
    const version = build ?? (await digestOf(path));
    await this.#kept.keep({ kind, version, source: path });
    return { kind, version };
  }

  remove(kind: ProgramKind, version: string): Promise<void> {
    return this.#kept.remove(kind, version);
  }

  async #closest(wanted: RuntimeName): Promise<Runtime> {
    const current = await this.current();
    if (wanted.runsc === current.runsc && wanted.agent === current.agent) return current;
    const runsc = wanted.runsc === current.runsc ? undefined : await this.#find(wanted.runsc);
    const agentPath = this.#kept.find("agent", wanted.agent);
    return {
      ...(runsc === undefined
        ? { runsc: current.runsc, commands: current.commands }
        : { runsc: wanted.runsc, commands: this.#commandsOf(runsc) }),
      ...(agentPath === undefined
        ? { agent: current.agent, agentPath: current.agentPath }
        : { agent: wanted.agent, agentPath }),
    };
  }

  async #keepInstalled(): Promise<Runtime> {
    const { installed, agent } = this.#options;
    const digest = await digestOf(agent);
    const [path, agentPath] = await Promise.all([
      this.#keepRunsc(installed.build, installed.path),
      this.#kept.keep({ kind: "agent", version: digest, source: agent }),
    ]);
    return { runsc: installed.build, agent: digest, commands: this.#commandsOf(path), agentPath };
  }

  /** An upgrade by a version that kept no programs left the earlier release in set-up's cache. */
  async #find(build: string): Promise<string | undefined> {
    const kept = this.#kept.find("runsc", build);
    if (kept !== undefined) return kept;
    const builds = join(cacheDirectory(), "runsc");
    for (const name of await readdir(builds).catch(() => [])) {
      const path = join(builds, name, "runsc");
      if ((await runscBuild(path)) === build) return await this.#keepRunsc(build, path);
    }
    return undefined;
  }

  #keepRunsc(version: string, source: string): Promise<string> {
    const isImmutable = source.startsWith(join(cacheDirectory(), "runsc/"));
    return this.#kept.keep({ kind: "runsc", version, source, isImmutable });
  }

  #commandsOf(runsc: string): Runsc {
    const { launcher, root, hasNetwork } = this.#options;
    const commands = this.#commands.get(runsc) ?? new Runsc({ runsc, launcher, root, hasNetwork });
    this.#commands.set(runsc, commands);
    return commands;
  }
}

/** The runtime in the requirements of a checkpoint. */
export function requirementsOf({ runtime = "", agent = "" }: CheckpointRequirements): RuntimeName {
  return { runsc: runtime.startsWith(PREFIX) ? runtime.slice(PREFIX.length) : "", agent };
}

async function digestOf(path: string): Promise<string> {
  return hash("sha256", await readFile(path), "hex").slice(0, 16);
}
