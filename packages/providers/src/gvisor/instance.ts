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
import { isFifoPairHeld, openFifoPair } from "../host/fifo-pair.ts";
import { SocketChannel } from "../host/socket-channel.ts";
import { WriteMark } from "../host/write-mark.ts";
import { findExit } from "./find-exit.ts";
import type { GvisorHost } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** A dying sandbox closes its descriptors one after another. */
const CLOSING_ROUNDS = 20;
const CLOSING_ROUND_MS = 10;

export interface GvisorInstanceOptions {
  readonly spec: InstanceSpec;
  /** An earlier program has spoken to its agent and may have stopped in the middle of a frame. */
  readonly isAdopted: boolean;
}

/** A running gVisor sandbox. */
export class GvisorInstance implements Instance {
  readonly id: SandboxId;
  readonly exited: Promise<InstanceExit>;
  readonly #host: GvisorHost;
  readonly #spec: InstanceSpec;
  readonly #directory: string;
  #channel: SocketChannel | undefined;
  #needsResync: boolean;
  #isSaved = false;
  #destroyed: Promise<void> | undefined;
  #resolveExited!: (exit: InstanceExit) => void;

  constructor(host: GvisorHost, { spec, isAdopted }: GvisorInstanceOptions) {
    this.id = spec.id;
    this.#host = host;
    this.#spec = spec;
    this.#directory = host.store.directory(spec.id);
    this.#needsResync = isAdopted && WriteMark.isSet(this.#directory);
    this.exited = new Promise((resolve) => {
      this.#resolveExited = resolve;
    });
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    // Two readers would split the bytes between them.
    this.#channel?.close();
    const ends = this.#destroyed === undefined ? openFifoPair(this.#directory) : undefined;
    if (ends === undefined) {
      await this.#checkEnd();
      throw new SandboxError("instance_ended", { message: `cannot connect to instance ${this.id}: it has ended` });
    }
    const channel = new SocketChannel(ends, () => {
      this.#checkEnd().catch((error: unknown) => {
        this.#resolveExited({ reason: "crashed", message: SandboxError.from(error).message });
      });
    });
    const needsResync = this.#needsResync;
    this.#channel = channel;
    // The stream may have stopped in the middle of a frame.
    this.#needsResync = true;
    return { channel, needsResync };
  }

  async checkpoint(directory: string, { keepsRunning }: CheckpointOptions): Promise<void> {
    // An instance that ends because it was saved has not crashed.
    this.#isSaved = !keepsRunning;
    const { runsc } = this.#host;
    const { exitCode } = await runsc.checkpoint(this.id, this.#directory, { image: directory, keepsRunning });
    if (exitCode === 0) return;
    this.#isSaved = false;
    const explanation = await runsc.explain(this.#directory);
    throw new SandboxError("checkpoint_failed", {
      message: `gVisor could not save instance ${this.id}: ${explanation || "runsc gave no reason"}`,
      hint: "the sandbox keeps running; if it happens again, report this as a bug",
    });
  }

  destroy(): Promise<void> {
    this.#destroyed ??= this.#destroy().catch((error: unknown) => {
      this.#destroyed = undefined;
      throw error;
    });
    return this.#destroyed;
  }

  async #destroy(): Promise<void> {
    this.#channel?.close();
    await removeInstance(this.#host, this.id);
    this.#resolveExited({ reason: "destroyed", message: "it was destroyed" });
  }

  /** Reports the end of the instance once no process holds the other end of its channel. */
  async #checkEnd(): Promise<void> {
    for (let round = 0; round < CLOSING_ROUNDS; round++) {
      if (this.#destroyed !== undefined || this.#isSaved) return;
      if (!isFifoPairHeld(this.#directory)) {
        this.#resolveExited(await findExit(this.#host, this.#spec));
        return;
      }
      await sleep(CLOSING_ROUND_MS);
    }
  }
}
