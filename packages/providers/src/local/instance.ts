import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectedChannel, type Instance, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { HostInstance } from "../host/host-instance.ts";
import { LentChannel } from "../host/lent-channel.ts";
import type { AgentProcess } from "./agent-process.ts";

/** How long an agent may take to end its processes. */
const END_TIMEOUT_MS = 5000;

export interface LocalInstanceOptions {
  readonly id: SandboxId;
  readonly agent: AgentProcess;
  /** Removes what is left once the agent has ended. */
  readonly cleanUp: () => Promise<void>;
}

/** An agent that runs as a child process of this program. */
export class LocalInstance extends HostInstance implements Instance {
  readonly #agent: AgentProcess;
  readonly #cleanUp: () => Promise<void>;
  #channel: LentChannel | undefined;
  #hasSpoken = false;
  #hasEnded = false;

  constructor({ id, agent, cleanUp }: LocalInstanceOptions) {
    super(id);
    this.#agent = agent;
    this.#cleanUp = cleanUp;
    agent.once("exit", (code, signal) => this.#ended(signal ?? `exit code ${code}`));
  }

  get isRunning(): boolean {
    return !this.#hasEnded;
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    if (this.#hasEnded || this.isDestroyed) throw this.noChannel();
    this.#channel?.close();
    const needsResync = this.#hasSpoken;
    this.#hasSpoken = true;
    // The agent ends with its stdin, so a closed channel must leave it open.
    this.#channel = new LentChannel(this.#agent.stdout, this.#agent.stdin);
    return { channel: this.#channel, needsResync };
  }

  async checkpoint(): Promise<void> {
    throw noCheckpoints(`instance ${this.id} cannot be saved`);
  }

  protected async remove(): Promise<void> {
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

  #ended(how: string): void {
    this.#hasEnded = true;
    this.#channel?.lose(new Error(`the agent ended with ${how}`));
    if (this.isDestroyed) this.end({ reason: "destroyed", message: "it was destroyed" });
    else this.end({ reason: "crashed", message: `its agent ended with ${how}` });
  }
}

/** An ordinary process cannot be saved or restored. */
export function noCheckpoints(what: string): SandboxError {
  return new SandboxError("provider_lacks_capability", {
    message: `${what}: the provider local has no checkpoints`,
    hint: "use the provider gvisor for sandboxes that can be saved, forked and moved",
  });
}
