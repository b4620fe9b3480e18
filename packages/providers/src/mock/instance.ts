import {
  type Clock,
  type ConnectedChannel,
  type Instance,
  type InstanceExit,
  type InstanceSpec,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { MockAgent } from "./agent.ts";
import { MockChannel } from "./channel.ts";
import type { MockFaults } from "./faults.ts";
import { MockSession } from "./session.ts";

export interface MockInstanceOptions {
  readonly spec: InstanceSpec;
  readonly clock: Clock;
  readonly faults: MockFaults;
  /** Called when nothing of it is left. */
  readonly removed: () => void;
}

/** An instance in memory. Tests can break it in every way that instances break. */
export class MockInstance implements Instance {
  readonly id: SandboxId;
  readonly agent: MockAgent;
  readonly exited: Promise<InstanceExit>;
  readonly channels: MockChannel[] = [];
  readonly #options: MockInstanceOptions;
  #isRunning = true;
  #resolveExited!: (exit: InstanceExit) => void;

  constructor(options: MockInstanceOptions) {
    this.#options = options;
    this.id = options.spec.id;
    this.agent = new MockAgent({ clock: options.clock, env: options.spec.env, bootId: `boot-${options.spec.id}` });
    this.exited = new Promise((resolve) => {
      this.#resolveExited = resolve;
    });
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  async connect(_signal: AbortSignal): Promise<ConnectedChannel> {
    const { clock, faults } = this.#options;
    if (!this.#isRunning) throw unavailable("not_running", `instance ${this.id} does not run`);
    if (countDown(faults, "refusedConnects")) throw unavailable("refused", `instance ${this.id} refused a channel`);
    const needsResync = this.channels.length > 0;
    const channel = new MockChannel(clock, faults);
    this.channels.push(channel);
    if (!countDown(faults, "silentConnects")) new MockSession(this.agent, channel, { clock, faults });
    return { channel, needsResync };
  }

  async destroy(): Promise<void> {
    const { clock, faults, removed } = this.#options;
    const { destroyDelayMs } = faults;
    if (destroyDelayMs !== undefined) await new Promise<void>((resolve) => clock.schedule(destroyDelayMs, resolve));
    if (countDown(faults, "failedDestroys")) throw unavailable("stuck", `instance ${this.id} could not be destroyed`);
    this.end({ reason: "destroyed", message: "it was destroyed" });
    removed();
  }

  crash(message = "the mock crashed it"): void {
    this.end({ reason: "crashed", message });
  }

  runOutOfMemory(): void {
    this.end({ reason: "out_of_memory", message: "the mock's memory is full" });
  }

  /** Breaks the channel; the instance runs on. */
  dropChannel(): void {
    this.channels.at(-1)?.drop();
  }

  /** Puts bytes on the channel as if the agent had sent them. */
  inject(bytes: Uint8Array): void {
    this.channels.at(-1)?.send(bytes);
  }

  /** The channel ends first and the reason is known a moment later, as with real instances. */
  end(exit: InstanceExit): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.agent.powerOff();
    for (const channel of this.channels) channel.drop("the instance has ended");
    this.#options.clock.schedule(0, () => this.#resolveExited(exit));
  }
}

function countDown(faults: MockFaults, field: "refusedConnects" | "silentConnects" | "failedDestroys"): boolean {
  const left = faults[field] ?? 0;
  if (left > 0) faults[field] = left - 1;
  return left > 0;
}

function unavailable(reason: string, message: string): SandboxError {
  return new SandboxError("unavailable", { reason, message });
}
