import { setTimeout as sleep } from "node:timers/promises";
import {
  type CheckpointOptions,
  type ConnectedChannel,
  type Instance,
  type InstanceExit,
  type InstanceSpec,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "../host/end-cgroup.ts";
import { isFifoPairHeld, openFifoPair } from "../host/fifo-pair.ts";
import { HostInstance } from "../host/host-instance.ts";
import { SocketChannel } from "../host/socket-channel.ts";
import { WriteMark } from "../host/write-mark.ts";
import type { GvisorHost } from "./host.ts";
import { explain } from "./runsc.ts";
import type { Runtime } from "./runtimes.ts";

/** A dying sandbox closes its descriptors one after another. */
const CLOSING_ROUNDS = 20;
const CLOSING_ROUND_MS = 10;

export interface GvisorInstanceOptions {
  readonly spec: InstanceSpec;
  readonly runtime: Runtime;
  /** An earlier program has spoken to its agent and may have stopped in the middle of a frame. */
  readonly isAdopted: boolean;
}

export class GvisorInstance extends HostInstance implements Instance {
  readonly #host: GvisorHost;
  readonly #spec: InstanceSpec;
  readonly #runtime: Runtime;
  readonly #directory: string;
  #channel: SocketChannel | undefined;
  #needsResync: boolean;

  constructor(host: GvisorHost, { spec, runtime, isAdopted }: GvisorInstanceOptions) {
    super(spec.id);
    this.#host = host;
    this.#spec = spec;
    this.#runtime = runtime;
    this.#directory = host.store.directory(spec.id);
    this.#needsResync = isAdopted && WriteMark.isSet(this.#directory);
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    // Two readers would split the bytes between them.
    this.#channel?.close();
    const ends = !this.isDestroyed ? openFifoPair(this.#directory) : undefined;
    if (ends === undefined) {
      await this.#checkEnd();
      throw this.noChannel();
    }
    const channel = new SocketChannel(ends, () => {
      this.#checkEnd().catch((error: unknown) => this.endBy(() => Promise.reject(error)));
    });
    const needsResync = this.#needsResync;
    this.#channel = channel;
    // The stream may have stopped in the middle of a frame.
    this.#needsResync = true;
    return { channel, needsResync };
  }

  async checkpoint(directory: string, { keepsRunning }: CheckpointOptions): Promise<void> {
    this.isSaved = !keepsRunning;
    const { commands } = this.#runtime;
    const { exitCode } = await commands.checkpoint(this.id, this.#directory, { image: directory, keepsRunning });
    if (exitCode === 0) return;
    this.isSaved = false;
    const explanation = await explain(this.#directory);
    throw new SandboxError("checkpoint_failed", {
      message: `gVisor could not save instance ${this.id}: ${explanation || "runsc gave no reason"}`,
      hint: "the sandbox keeps running; if it happens again, report this as a bug",
    });
  }

  protected async remove(): Promise<void> {
    this.#channel?.close();
    await removeInstance(this.#host, this.id);
  }

  /** Reports the end of the instance once no process holds the other end of its channel. */
  async #checkEnd(): Promise<void> {
    for (let round = 0; round < CLOSING_ROUNDS; round++) {
      if (this.isDestroyed || this.isSaved) return;
      if (!isFifoPairHeld(this.#directory)) return await this.endBy(() => findExit(this.#host, this.#spec));
      await sleep(CLOSING_ROUND_MS);
    }
  }
}

/** Why a sandbox has ended. Must run before its cgroup is removed, because the cgroup counts the OOM kills. */
async function findExit(host: GvisorHost, { id, memoryMib }: InstanceSpec): Promise<InstanceExit> {
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  const explanation = await explain(host.store.directory(id));
  // The host may have killed only a stand-in, long before; a kernel that it kills leaves no message.
  if (explanation === "" && (await host.cgroups.oomKills(host.cgroupPath(id))) > 0) {
    return { reason: "out_of_memory", message: `its limit is ${memoryMib} MiB` };
  }
  return { reason: "crashed", message: explanation || "its processes ended without an error message" };
}

/**
 * Removes every trace of an instance in any state. Its directory goes last, so that an interrupted removal can be found
 * and repeated.
 */
export async function removeInstance(host: GvisorHost, id: SandboxId): Promise<void> {
  const { commands } = await host.runtimes.of(id);
  await host.store.beginRemoval(id);
  // If runsc fails, the cgroup still contains every process.
  await commands.delete(id);
  await endCgroup(host.cgroups, host.cgroupPath(id));
  await commands.forget(id);
  await host.store.remove(id);
}
