import { stat, truncate } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { CheckpointOptions, Clock, ConnectedChannel, Instance, InstanceSpec } from "@sandpiper/core";
import { Heartbeat } from "../guest/heartbeat.ts";
import { endCgroup } from "../host/end-cgroup.ts";
import { HostInstance } from "../host/host-instance.ts";
import { findMachineExit, type MachineHost, removeMachine } from "../host/machine-host.ts";
import { ApiClient } from "./api/api-client.ts";
import { Presence } from "./api/presence.ts";
import { saveMachine } from "./machine/checkpoint.ts";
import { machineDirectory } from "./machine/jail.ts";
import { API_SOCKET, CONSOLE_LOG, VSOCK_SOCKET } from "./machine/machine-files.ts";
import { VsockChannel } from "./vsock/vsock-channel.ts";
import { untilConnected } from "./vsock/vsock-connection.ts";

/** The limit of the console log, because a guest may write without end. */
const MAX_CONSOLE_BYTES = 1024 * 1024;
const RECONNECT_MS = 10_000;

export class FirecrackerInstance extends HostInstance implements Instance {
  readonly #host: MachineHost;
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #directory: string;
  readonly #presence: Presence;
  #heartbeat: Heartbeat;
  #channel: VsockChannel | undefined;

  constructor(host: MachineHost, { id }: InstanceSpec, clock: Clock) {
    super(id);
    this.#host = host;
    this.#clock = clock;
    this.#directory = host.store.directory(id);
    this.#api = new ApiClient(this.#path(API_SOCKET));
    this.#heartbeat = this.#beat();
    this.#presence = new Presence(this.#path(API_SOCKET));
    this.#presence.ended.then(() => this.#ended());
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    // The agent serves only its newest connection.
    this.#channel?.close();
    const channel = new VsockChannel(await this.#connectAgent(signal));
    this.#channel = channel;
    // Each connection is a new stream.
    return { channel, needsResync: false };
  }

  async checkpoint(directory: string, { keepsRunning, onCaptured }: CheckpointOptions): Promise<void> {
    const channel = this.#channel;
    // Firecracker answers no other request while it saves a machine.
    this.#heartbeat.stop();
    this.isSaved = !keepsRunning;
    channel?.beginReplacing();
    try {
      await saveMachine(this.#api, {
        machine: machineDirectory(this.#directory),
        id: this.id,
        directory,
        keepsRunning,
      });
    } catch (error) {
      this.isSaved = false;
      await this.#goOn(channel);
      throw error;
    }
    if (keepsRunning) await this.#goOn(channel);
    else await this.#end();
    onCaptured?.();
  }

  protected async remove(): Promise<void> {
    this.#heartbeat.stop();
    this.#presence.stop();
    this.#channel?.close();
    await removeMachine(this.#host, this.id);
  }

  /** A checkpoint ends all connections into the machine. */
  async #goOn(channel: VsockChannel | undefined): Promise<void> {
    this.#heartbeat = this.#beat();
    if (channel === undefined) return;
    try {
      channel.replace(await this.#connectAgent(AbortSignal.timeout(RECONNECT_MS)));
    } catch (error) {
      channel.giveUp(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #end(): Promise<void> {
    this.#presence.stop();
    this.#channel?.close();
    await endCgroup(this.#host.cgroups, this.#host.cgroupPath(this.id));
  }

  async #connectAgent(signal: AbortSignal): Promise<Socket> {
    try {
      return await untilConnected(this.#path(VSOCK_SOCKET), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw this.noChannel(error);
    }
  }

  async #ended(): Promise<void> {
    this.#heartbeat.stop();
    if (!this.isSaved) this.#channel?.close();
    await this.endBy(() => findMachineExit(this.#host, this.id));
  }

  #beat(): Heartbeat {
    return new Heartbeat({
      clock: this.#clock,
      ask: async () => void (await this.#api.describe()),
      onSilent: (message) => this.#silent(message),
      onBeat: () => void this.#trimConsole().catch(() => {}),
    });
  }

  #silent(message: string): void {
    if (this.isDestroyed) return;
    this.end({ reason: "crashed", message });
    this.#channel?.close();
    this.#host.cgroups.kill(this.#host.cgroupPath(this.id)).catch(() => {});
  }

  /** Firecracker opens the log for appending, so truncating it is safe. */
  async #trimConsole(): Promise<void> {
    const path = join(this.#directory, CONSOLE_LOG);
    if ((await stat(path)).size > MAX_CONSOLE_BYTES) await truncate(path, 0);
  }

  #path(name: string): string {
    return join(machineDirectory(this.#directory), name);
  }
}
