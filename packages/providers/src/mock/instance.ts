import {
  type CheckpointOptions,
  type Clock,
  type ConnectedChannel,
  type DestroyOptions,
  type Instance,
  type InstanceExit,
  type InstanceSpec,
  pause,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { MockAgent, type SavedAgent } from "./agent.ts";
import { MockChannel } from "./channel.ts";
import { writeCheckpoint } from "./checkpoint-file.ts";
import type { MockFaults } from "./faults.ts";
import { MockSession } from "./session.ts";

export interface MockInstanceOptions {
  readonly spec: InstanceSpec;
  readonly clock: Clock;
  readonly faults: MockFaults;
  /** Runs nothing until it is restored. */
  readonly isPrepared: boolean;
  /** Whether checkpoints keep its processes. */
  readonly keepsProcesses: boolean;
  readonly addresses: Instance["addresses"];
  /** Called when nothing of it is left. */
  readonly removed: (options: DestroyOptions) => void;
}

/** An instance in memory that tests can break in every way. */
export class MockInstance implements Instance {
  readonly id: SandboxId;
  readonly channels: MockChannel[] = [];
  readonly addresses: Instance["addresses"];
  earlierProcesses: readonly string[] | undefined;
  isRunning: boolean;
  readonly #options: MockInstanceOptions;
  readonly #exit = Promise.withResolvers<InstanceExit>();
  readonly exited = this.#exit.promise;
  #agent: MockAgent;
  #hasEnded = false;

  constructor(options: MockInstanceOptions) {
    this.#options = options;
    this.id = options.spec.id;
    this.#agent = MockAgent.boot(options.clock, { bootId: `boot-${options.spec.id}` });
    this.addresses = options.addresses;
    this.isRunning = !options.isPrepared;
  }

  async connect(_signal: AbortSignal): Promise<ConnectedChannel> {
    const { clock, faults } = this.#options;
    if (!this.isRunning) throw unavailable(`instance ${this.id} does not run`);
    if (countDown(faults, "refusedConnects")) throw unavailable(`instance ${this.id} refused a channel`);
    const needsResync = this.channels.length > 0;
    const channel = new MockChannel(clock, faults);
    this.channels.push(channel);
    if (!countDown(faults, "silentConnects")) new MockSession(this.#agent, channel, faults);
    return { channel, needsResync };
  }

  async checkpoint(directory: string, { keepsRunning, onCaptured, processes }: CheckpointOptions): Promise<void> {
    const { clock, faults, keepsProcesses } = this.#options;
    if (faults.checkpointDelayMs !== undefined) await pause(clock, faults.checkpointDelayMs);
    if (faults.checkpointFailure !== undefined) throw faults.checkpointFailure;
    // In its own turn of the event loop, when no program is in the middle of a step.
    await new Promise((resolve) => setImmediate(resolve));
    if (!this.isRunning) throw unavailable(`instance ${this.id} does not run`);
    if (!this.#agent.isQuiesced) {
      const message = `instance ${this.id} cannot be saved: its agent is not quiesced`;
      throw new SandboxError("not_quiesced", { message });
    }
    const saved = this.#agent.save();
    const withoutProcesses = { ...saved, processes: [], earlierProcesses: processes };
    const writing = writeCheckpoint(directory, keepsProcesses ? saved : withoutProcesses);
    onCaptured?.();
    await writing;
    if (!keepsRunning) this.#halt("the instance was saved and stopped");
  }

  /** For a prepared instance. */
  restore(saved: SavedAgent): void {
    this.#agent = MockAgent.restore(this.#options.clock, saved);
    this.earlierProcesses = saved.earlierProcesses;
    this.isRunning = true;
  }

  async destroy(options: DestroyOptions = {}): Promise<void> {
    const { clock, faults, removed } = this.#options;
    if (faults.destroyDelayMs !== undefined) await pause(clock, faults.destroyDelayMs);
    if (countDown(faults, "failedDestroys")) throw unavailable(`instance ${this.id} could not be destroyed`);
    this.end({ reason: "destroyed", message: "it was destroyed" });
    removed(options);
  }

  crash(message = "the mock crashed it"): void {
    this.end({ reason: "crashed", message });
  }

  runOutOfMemory(): void {
    this.end({ reason: "out_of_memory", message: "the mock's memory is full" });
  }

  /** Breaks the channel; the instance keeps running. */
  dropChannel(): void {
    this.channels.at(-1)?.drop();
  }

  /** The channel ends first and the reason follows, as with real instances. */
  end(exit: InstanceExit): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#halt("the instance has ended");
    this.#options.clock.schedule(0, () => this.#exit.resolve(exit));
  }

  #halt(why: string): void {
    if (!this.isRunning) return;
    this.isRunning = false;
    this.#agent.powerOff();
    for (const channel of this.channels) channel.drop(why);
  }
}

function countDown(faults: MockFaults, field: "refusedConnects" | "silentConnects" | "failedDestroys"): boolean {
  const left = faults[field] ?? 0;
  if (left > 0) faults[field] = left - 1;
  return left > 0;
}

function unavailable(message: string): SandboxError {
  return new SandboxError("mock_fault", { message });
}
