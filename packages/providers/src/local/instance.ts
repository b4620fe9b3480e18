import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectedChannel, type Instance, type InstanceExit, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { AgentProcess } from "./agent-process.ts";
import { LocalChannel } from "./channel.ts";
import { noCheckpoints } from "./no-checkpoints.ts";

/** How long an agent may take to end its processes. */
const END_TIMEOUT_MS = 5000;

export interface LocalInstanceOptions {
  readonly id: SandboxId;
  readonly agent: AgentProcess;
  /** Removes what is left once the agent has ended. */
  readonly cleanUp: () => Promise<void>;
}

/** An agent that runs as a child process of this program. */
export class LocalInstance implements Instance {
  readonly id: SandboxId;
  readonly exited: Promise<InstanceExit>;
  readonly #agent: AgentProcess;
  readonly #cleanUp: () => Promise<void>;
  #channel: LocalChannel | undefined;
  #hasSpoken = false;
  #hasEnded = false;
  #destroyed: Promise<void> | undefined;

  constructor({ id, agent, cleanUp }: LocalInstanceOptions) {
    this.id = id;
    this.#agent = agent;
    this.#cleanUp = cleanUp;
    this.exited = once(agent, "exit").then(([code, signal]) => this.#end(signal ?? `exit code ${code}`));
  }

  get isRunning(): boolean {
    return !this.#hasEnded;
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    if (this.#hasEnded || this.#destroyed !== undefined) {
      throw new SandboxError("instance_ended", { message: `cannot connect to instance ${this.id}: it has ended` });
    }
    this.#channel?.close();
    const needsResync = this.#hasSpoken;
    this.#hasSpoken = true;
    this.#channel = new LocalChannel(this.#agent);
    return { channel: this.#channel, needsResync };
  }

  async checkpoint(): Promise<void> {
    throw noCheckpoints(`instance ${this.id} cannot be saved`);
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
    // The agent kills its processes when its stdin closes.
    this.#agent.stdin.destroy();
    const stop = new AbortController();
    await Promise.race([this.exited, sleep(END_TIMEOUT_MS, undefined, { signal: stop.signal }).catch(() => {})]);
    stop.abort();
    if (!this.#hasEnded) this.#agent.kill("SIGKILL");
    await this.exited;
    await this.#cleanUp();
  }

  #end(how: string): InstanceExit {
    this.#hasEnded = true;
    this.#channel?.end(new Error(`the agent ended with ${how}`));
    if (this.#destroyed !== undefined) return { reason: "destroyed", message: "it was destroyed" };
    return { reason: "crashed", message: `its agent ended with ${how}` };
  }
}
