import { open } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { CheckpointOptions, Clock, ConnectedChannel, Instance, InstanceSpec, PingAgent } from "@sandpiper/core";
import { MachineInstance } from "../guest/machine-instance.ts";
import type { SocketChannel } from "../host/socket-channel.ts";
import { trimLog } from "../host/trim-log.ts";
import { connectSocket } from "../host/unix-socket.ts";
import { WriteMark } from "../host/write-mark.ts";
import { copyDisks, STATE_FILE } from "./checkpoint-files.ts";
import type { QemuState } from "./host.ts";
import { agentChannel } from "./machine/agent-channel.ts";
import { continueBlocked, findTrouble } from "./machine/find-trouble.ts";
import { GuestPulse } from "./machine/guest-pulse.ts";
import { AGENT_SOCKET, CONSOLE_LOG } from "./machine/machine-arguments.ts";
import { prepareMigration, saveState } from "./machine/migration.ts";
import { QEMU_LOG } from "./machine/waiting-shell.ts";
import type { QmpClient } from "./qmp/qmp-client.ts";

export interface QemuInstanceOptions {
  readonly spec: InstanceSpec;
  readonly clock: Clock;
  readonly monitor: QmpClient;
  /** An unused connection to its agent; without one an earlier program has spoken to the agent. */
  readonly agent?: Socket | undefined;
}

export class QemuInstance extends MachineInstance<SocketChannel> implements Instance {
  readonly #monitor: QmpClient;
  readonly #directory: string;
  #pulse: GuestPulse | undefined;
  #isHeard = false;
  /** True while a checkpoint is taken. */
  #isStill = false;
  /** True while the host's disk is full. */
  #isBlocked = false;
  #unused: Socket | undefined;
  #needsResync: boolean;

  constructor(host: QemuState, { spec, clock, monitor, agent }: QemuInstanceOptions) {
    super(host, spec.id, clock);
    this.#monitor = monitor;
    this.#directory = host.machineDirectory(spec.id);
    this.#unused = agent;
    this.#needsResync = agent === undefined && WriteMark.isSet(this.#directory);
    this.listen(() => {
      // A guest can write to its console without end.
      for (const name of [CONSOLE_LOG, QEMU_LOG]) void trimLog(join(this.#directory, name)).catch(() => {});
    });
    // QEMU holds the monitor open for as long as it lives.
    monitor.closed.then(() => this.ended());
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    // QEMU accepts one client at a time.
    this.channel?.close();
    const needsResync = this.#needsResync;
    const socket = this.#unused ?? (await this.#connect(signal));
    this.#unused = undefined;
    // The stream may have stopped in the middle of a frame.
    this.#needsResync = true;
    this.channel = agentChannel(socket, this.#directory, () => {
      this.#isHeard = true;
    });
    return { channel: this.channel, needsResync };
  }

  watchAgent(ask: PingAgent): void {
    this.#pulse = new GuestPulse(ask, {
      clock: this.clock,
      takeHeard: () => {
        const isHeard = this.#isHeard;
        this.#isHeard = false;
        return isHeard;
      },
      isStill: () => this.#isStill || this.#isBlocked,
      onSilent: (message) => this.silent(message),
    });
  }

  async checkpoint(directory: string, { keepsRunning, onCaptured }: CheckpointOptions): Promise<void> {
    const monitor = this.#monitor;
    await using file = await open(join(directory, STATE_FILE), "wx", 0o600);
    await prepareMigration(monitor, { ignoresShared: false });
    this.isSaved = !keepsRunning;
    this.#isStill = true;
    await monitor.execute("stop", {});
    try {
      await saveState(monitor, this.#directory, file);
      await copyDisks(this.#directory, directory);
    } catch (error) {
      this.isSaved = false;
      await monitor.execute("cont", {});
      this.#isStill = false;
      throw error;
    }
    await monitor.execute(keepsRunning ? "cont" : "quit", {});
    this.#isStill = false;
    onCaptured?.();
    if (!keepsRunning) await monitor.closed;
  }

  protected override async remove(): Promise<void> {
    this.#unused?.destroy();
    await super.remove();
    this.#monitor.close();
  }

  protected async ask(): Promise<string | undefined> {
    this.#isBlocked = !this.#isStill && (await continueBlocked(this.#monitor));
    return await findTrouble(this.#monitor);
  }

  protected override stopListening(): void {
    super.stopListening();
    this.#pulse?.stop();
  }

  #connect(signal: AbortSignal): Promise<Socket> {
    return this.connectAgent(() => connectSocket(join(this.#directory, AGENT_SOCKET), signal), signal);
  }
}
