import type { Duplex } from "node:stream";
import type {
  CheckpointOptions,
  ConnectedChannel,
  DestroyOptions,
  Instance,
  InstanceExit,
  InstanceSpec,
} from "@sandpiper/core";
import type Docker from "dockerode";
import { HostInstance } from "../host/host-instance.ts";
import { AttachChannel } from "./channel/attach-channel.ts";
import { saveContainer } from "./checkpoint/checkpoint.ts";
import { wasStopped } from "./container/container-state.ts";
import { inspectContainer } from "./container/inspect-container.ts";
import type { EngineEventsListener } from "./events/engine-events.ts";
import type { DockerHost } from "./host.ts";
import { removeInstance } from "./remove-instance.ts";

export interface DockerInstanceOptions {
  readonly spec: InstanceSpec;
  readonly container: Docker.Container;
  /** Opened before the start, so that no earlier client used it. */
  readonly stream?: Duplex | undefined;
  /** If false, `begin` follows the start. */
  readonly isStarted: boolean;
  /** The addresses of published ports. */
  readonly addresses?: Instance["addresses"];
  readonly service: Instance["service"];
  readonly earlierProcesses?: Instance["earlierProcesses"];
}

/** The holder of each instance in this program, by directory: two providers must not hold the same instance. */
const holders = new Map<string, object>();

export class DockerInstance extends HostInstance implements Instance {
  addresses: Instance["addresses"];
  readonly service: Instance["service"];
  readonly earlierProcesses: Instance["earlierProcesses"];
  readonly #host: DockerHost;
  readonly #spec: InstanceSpec;
  readonly #directory: string;
  readonly #container: Docker.Container;
  readonly #unsubscribe: () => void;
  #fresh: Duplex | undefined;
  #channel: AttachChannel | undefined;
  #stderrTail = "";
  #hasBegun: boolean;
  #isToBeChecked = false;
  #isChecking = false;
  #wasEngineAway = false;

  constructor(host: DockerHost, options: DockerInstanceOptions) {
    const { spec, container, stream, isStarted, addresses, service, earlierProcesses } = options;
    super(spec.id);
    this.earlierProcesses = earlierProcesses;
    this.#host = host;
    this.#spec = spec;
    this.#container = container;
    this.#fresh = stream;
    this.addresses = addresses;
    this.service = service;
    this.#hasBegun = isStarted;
    const listener: EngineEventsListener = {
      began: (present, context) => {
        if (present.get(this.id)?.isRunning !== true) this.#checkSoon(context);
      },
      happened: ({ id, action }) => {
        if (id === this.id && (action === "die" || action === "destroy")) this.#checkSoon();
      },
    };
    this.#unsubscribe = host.events.subscribe(listener, { wantsPresent: false });
    this.#directory = host.store.directory(spec.id);
    holdInstance(this.#directory, this);
    this.exited.then(() => this.#leave());
  }

  get containerId(): string {
    return this.#container.id;
  }

  /** Call after the start: from now on, a container that does not run has ended. */
  begin(): void {
    this.#hasBegun = true;
    if (this.#isToBeChecked) this.#checkSoon();
  }

  /** Call when the start failed; the caller removes the container. */
  abandon(): void {
    this.#leave();
    this.#fresh?.destroy();
  }

  async connect(signal: AbortSignal): Promise<ConnectedChannel> {
    signal.throwIfAborted();
    // Two attached clients would both receive all output, and both would answer.
    this.#channel?.close();
    if (this.isDestroyed) throw this.noChannel();
    const isFresh = this.#fresh !== undefined && !this.#fresh.destroyed;
    const stream = isFresh ? (this.#fresh as Duplex) : await this.#open();
    this.#fresh = undefined;
    const channel = new AttachChannel({ stream, onLost: () => this.#lost(channel) });
    this.#channel = channel;
    return { channel, needsResync: this.#host.agentStreams.isStdio && !isFresh };
  }

  async checkpoint(directory: string, options: CheckpointOptions): Promise<void> {
    this.isSaved = !options.keepsRunning;
    const { engine, home } = this.#host;
    try {
      await saveContainer(engine, this.#container, { spec: this.#spec, home, directory, ...options });
    } catch (error) {
      this.isSaved = false;
      throw error;
    }
  }

  protected async remove(options: DestroyOptions): Promise<void> {
    this.#fresh?.destroy();
    this.#channel?.close();
    await removeInstance(this.#host, this.id, options);
  }

  /** Checks the state first: an engine also attaches to a container that has ended, and then sends nothing. */
  async #open(): Promise<Duplex> {
    const found = await inspectContainer(this.#host, this.id);
    if (found?.State.Running === true) return await this.#host.agentStreams.open(this.#container);
    this.#checkSoon();
    throw this.noChannel();
  }

  #lost(channel: AttachChannel): void {
    if (this.#host.agentStreams.isStdio) this.#stderrTail = channel.stderrTail || this.#stderrTail;
    this.#checkSoon();
  }

  #leave(): void {
    this.#unsubscribe();
    releaseInstance(this.#directory, this);
  }

  #checkSoon({ wasEngineAway = false } = {}): void {
    this.#isToBeChecked = true;
    this.#wasEngineAway ||= wasEngineAway;
    if (this.#hasBegun && !this.#isChecking) this.#checkWhileDue();
  }

  async #checkWhileDue(): Promise<void> {
    this.#isChecking = true;
    while (this.#isToBeChecked) {
      this.#isToBeChecked = false;
      // If the engine does not answer, `began` starts another check when it is back.
      await this.#check().catch(() => {});
    }
    this.#isChecking = false;
  }

  /** Resolves `exited` if the container has ended. */
  async #check(): Promise<void> {
    const found = await inspectContainer(this.#host, this.id);
    // A container with another id but the same name belongs to another instance.
    const state = found?.Id === this.#container.id ? found.State : undefined;
    if (state?.Running === true) {
      this.#wasEngineAway = false;
      return;
    }
    const exit = await this.#findExit(state);
    if (!this.isDestroyed && !this.isSaved) this.end(exit);
  }

  /** Takes the engine's state of the container; undefined when it was removed. */
  async #findExit(state: Docker.ContainerInspectInfo["State"] | undefined): Promise<InstanceExit> {
    const { store } = this.#host;
    if (await store.isRemoved(this.id)) return { reason: "destroyed", message: "it was removed by its id" };
    if (state === undefined || state.Status === "removing") {
      return { reason: "crashed", message: "another client of the engine removed its container" };
    }
    if (state.OOMKilled && state.ExitCode !== 0) {
      return { reason: "out_of_memory", message: `its limit is ${this.#spec.memoryMib} MiB` };
    }
    if (wasStopped(store, this.id)) return { reason: "stopped", message: "its container was stopped" };
    const how = `its container ended with exit code ${state.ExitCode}`;
    const when = this.#wasEngineAway ? "while the engine was down" : "";
    return { reason: "crashed", message: [how, when, state.Error, this.#stderrTail.trim()].filter(Boolean).join("; ") };
  }
}

export function holdInstance(directory: string, holder: object): void {
  holders.set(directory, holder);
}

export function releaseInstance(directory: string, holder: object): void {
  if (holders.get(directory) === holder) holders.delete(directory);
}

export function isInstanceHeld(directory: string): boolean {
  return holders.has(directory);
}
