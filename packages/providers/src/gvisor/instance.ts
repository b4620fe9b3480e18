import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConnectedChannel,
  type Instance,
  type InstanceExit,
  type InstanceSpec,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { isFifoPairHeld, openFifoPair } from "../host/fifo-pair.ts";
import { SocketChannel } from "../host/socket-channel.ts";
import { findExit } from "./find-exit.ts";
import type { GvisorHost } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

/** A dying sandbox closes its descriptors one after another. */
const CLOSING_ROUNDS = 20;
const CLOSING_ROUND_MS = 10;

export interface GvisorInstanceOptions {
  readonly spec: InstanceSpec;
  /** True when somebody spoke to its agent before, and may have stopped in the middle of a word. */
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
  #hasSpoken: boolean;
  #destroyed: Promise<void> | undefined;
  #resolveExited!: (exit: InstanceExit) => void;

  constructor(host: GvisorHost, { spec, isAdopted }: GvisorInstanceOptions) {
    this.id = spec.id;
    this.#host = host;
    this.#spec = spec;
    this.#directory = host.store.directory(spec.id);
    this.#hasSpoken = isAdopted;
    this.exited = new Promise((resolve) => {
      this.#resolveExited = resolve;
    });
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    // Two readers would each get half of the bytes.
    this.#channel?.close();
    const ends = this.#destroyed === undefined ? openFifoPair(this.#directory) : undefined;
    if (ends === undefined) {
      await this.#checkEnd();
      throw new SandboxError("gone", {
        reason: "instance_ended",
        message: `there is no channel to instance ${this.id}: it has ended`,
        hint: "create a new sandbox",
      });
    }
    const channel = new SocketChannel(ends, () => {
      this.#checkEnd().catch((error: unknown) => {
        this.#resolveExited({ reason: "crashed", message: SandboxError.from(error).message });
      });
    });
    const needsResync = this.#hasSpoken;
    this.#channel = channel;
    this.#hasSpoken = true;
    return { channel, needsResync };
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

  /** Says that the instance has ended, and why, once nobody holds the other end of its channel. */
  async #checkEnd(): Promise<void> {
    for (let round = 0; round < CLOSING_ROUNDS; round++) {
      if (this.#destroyed !== undefined) return;
      if (!isFifoPairHeld(this.#directory)) {
        this.#resolveExited(await findExit(this.#host, this.#spec));
        return;
      }
      await sleep(CLOSING_ROUND_MS);
    }
  }
}
