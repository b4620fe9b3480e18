import type { Socket } from "node:net";
import type { Channel, Clock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { HostInstance } from "../host/host-instance.ts";
import { findMachineExit, type MachineHost, removeMachine } from "../host/machine-host.ts";
import { Heartbeat } from "./heartbeat.ts";

/** An instance in a virtual machine, which may also hang. */
export abstract class MachineInstance<AgentChannel extends Channel> extends HostInstance {
  protected readonly host: MachineHost;
  protected readonly clock: Clock;
  protected channel: AgentChannel | undefined;
  #heartbeat: Heartbeat | undefined;

  constructor(host: MachineHost, id: SandboxId, clock: Clock) {
    super(id);
    this.host = host;
    this.clock = clock;
  }

  /** Asks the emulator; resolves with the problem of a machine that has failed. */
  protected abstract ask(): Promise<string | undefined>;

  protected listen(onBeat?: () => void): void {
    this.#heartbeat = new Heartbeat({
      clock: this.clock,
      ask: () => this.ask(),
      onSilent: (message) => this.silent(message),
      onBeat,
    });
  }

  protected stopListening(): void {
    this.#heartbeat?.stop();
  }

  protected async remove(): Promise<void> {
    this.stopListening();
    this.channel?.close();
    await removeMachine(this.host, this.id);
  }

  protected async connectAgent(connect: () => Promise<Socket>, signal: AbortSignal): Promise<Socket> {
    try {
      return await connect();
    } catch (error) {
      signal.throwIfAborted();
      throw this.noChannel(error);
    }
  }

  /** The emulator has ended. */
  protected async ended(): Promise<void> {
    this.stopListening();
    await this.endBy(() => findMachineExit(this.host, this.id));
  }

  /** The machine hangs. */
  protected silent(message: string): void {
    if (this.isDestroyed) return;
    this.stopListening();
    this.end({ reason: "crashed", message });
    this.channel?.close();
    const { host, id } = this;
    const kill = async () => host.cgroups.kill(await host.cgroupOf(id));
    kill().catch(() => {});
  }
}
