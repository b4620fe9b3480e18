import type { Socket } from "node:net";
import { join } from "node:path";
import type { CheckpointOptions, Clock, ConnectedChannel, Instance, InstanceSpec } from "@sandpiper/core";
import { MachineInstance } from "../guest/machine-instance.ts";
import { endCgroup } from "../host/end-cgroup.ts";
import type { MachineHost } from "../host/machine-host.ts";
import { trimLog } from "../host/trim-log.ts";
import { ApiClient } from "./api/api-client.ts";
import { Presence } from "./api/presence.ts";
import type { FirecrackerOptions } from "./host.ts";
import { saveMachine } from "./machine/checkpoint.ts";
import { machineDirectory } from "./machine/jail.ts";
import { API_SOCKET, VSOCK_SOCKET } from "./machine/machine-files.ts";
import { logsOf } from "./machine/start-machine.ts";
import { VsockChannel } from "./vsock/vsock-channel.ts";
import { untilConnected } from "./vsock/vsock-connection.ts";

const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;

interface FirecrackerInstanceOptions extends Pick<FirecrackerOptions, "connectTimeoutMs"> {
  readonly clock: Clock;
}

export class FirecrackerInstance extends MachineInstance<VsockChannel> implements Instance {
  readonly #api: ApiClient;
  readonly #connectTimeoutMs: number;
  readonly #directory: string;
  readonly #presence: Presence;

  constructor(host: MachineHost, { id }: InstanceSpec, { clock, connectTimeoutMs }: FirecrackerInstanceOptions) {
    super(host, id, clock);
    this.#connectTimeoutMs = connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    this.#directory = host.store.directory(id);
    this.#api = new ApiClient(this.#path(API_SOCKET));
    this.#listen();
    this.#presence = new Presence(this.#path(API_SOCKET));
    this.#presence.ended.then(() => this.#gone());
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    // The agent serves only its newest connection.
    this.channel?.close();
    const channel = new VsockChannel(await this.#connect(signal));
    this.channel = channel;
    // Each connection is a new stream.
    return { channel, needsResync: false };
  }

  async checkpoint(directory: string, { keepsRunning, onCaptured }: CheckpointOptions): Promise<void> {
    const channel = this.channel;
    // Firecracker answers no other request while it saves a machine.
    this.stopListening();
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

  protected override async remove(): Promise<void> {
    this.#presence.stop();
    await super.remove();
  }

  protected async ask(): Promise<undefined> {
    await this.#api.describe();
  }

  /** A checkpoint ends all connections into the machine. */
  async #goOn(channel: VsockChannel | undefined): Promise<void> {
    this.#listen();
    if (channel === undefined) return;
    try {
      channel.replace(await this.#connect(AbortSignal.timeout(this.#connectTimeoutMs)));
    } catch (error) {
      channel.giveUp(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #end(): Promise<void> {
    this.#presence.stop();
    this.channel?.close();
    await endCgroup(this.host.cgroups, this.host.cgroupPath(this.id));
  }

  #connect(signal: AbortSignal): Promise<Socket> {
    return this.connectAgent(() => untilConnected(this.#path(VSOCK_SOCKET), signal), signal);
  }

  async #gone(): Promise<void> {
    if (!this.isSaved) this.channel?.close();
    await this.ended();
  }

  #listen(): void {
    this.listen(() => {
      for (const path of logsOf(this.#directory)) void trimLog(path).catch(() => {});
    });
  }

  #path(name: string): string {
    return join(machineDirectory(this.#directory), name);
  }
}
