import { setTimeout as sleep } from "node:timers/promises";
import { killAll } from "../host/cgroup-files.ts";
import { createTransientMachine, removeTransientMachine } from "../host/transient-machine.ts";
import type { QemuHost } from "./host.ts";
import type { LaunchedMachine } from "./machine/launch-machine.ts";
import type { MachineShape } from "./machine/machine-shape.ts";
import { loadState } from "./machine/migration.ts";
import { launchClone } from "./template/clone.ts";
import { type Template, templateKey } from "./template/template.ts";
import { warmMachine } from "./template/warm-machine.ts";

const START_TIMEOUT_MS = 30_000;
/** Whoever has just got a machine has the processors to itself for what it does first. */
const REST_MS = 50;

/**
 * Copies of templates that were started ahead, have run something and stand still: most of what a new machine takes is QEMU's
 * own start, and the translation of what the guest runs first. As many are kept of each shape that was asked for as the
 * provider is told to.
 */
export class PreparedMachines implements AsyncDisposable {
  readonly #count: number;
  readonly #shelves = new Map<string, LaunchedMachine[]>();
  readonly #filling = new Map<string, Promise<void>>();
  #host: QemuHost | undefined;
  #isClosed = false;

  constructor(count: number) {
    this.#count = count;
    if (count > 0) process.once("exit", this.#endAll);
  }

  take(host: QemuHost, shape: MachineShape): LaunchedMachine | undefined {
    const shelf = this.#shelves.get(shelfKey(host, shape)) ?? [];
    for (;;) {
      const machine = shelf.shift();
      if (machine === undefined) return undefined;
      if (!machine.monitor.isClosed) {
        hold(machine, true);
        return machine;
      }
      // It was ended by somebody else.
      removeTransientMachine(host, machine).catch(() => {});
    }
  }

  /** In the background; whoever needs one meanwhile starts one for itself. */
  refill(host: QemuHost, shape: MachineShape, template: Template): void {
    const key = shelfKey(host, shape);
    this.#host = host;
    if (this.#count === 0 || this.#isClosed || this.#filling.has(key)) return;
    const filling = this.#fill(host, key, { shape, template })
      // The next one who asks tries again, and is told why.
      .catch(() => {})
      .finally(() => this.#filling.delete(key));
    this.#filling.set(key, filling);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    process.off("exit", this.#endAll);
    await Promise.all(this.#filling.values());
    const host = this.#host;
    if (host === undefined) return;
    await Promise.all(this.#all().map((machine) => discard(host, machine)));
    this.#shelves.clear();
  }

  async #fill(
    host: QemuHost,
    key: string,
    { shape, template }: { readonly shape: MachineShape; readonly template: Template },
  ): Promise<void> {
    const shelf = this.#shelves.get(key) ?? [];
    this.#shelves.set(key, shelf);
    await sleep(REST_MS);
    while (shelf.length < this.#count && !this.#isClosed) {
      const place = await createTransientMachine(host);
      try {
        const signal = AbortSignal.timeout(START_TIMEOUT_MS);
        const machine = await launchClone(host, { ...place, template, shape, signal });
        await loadState(machine.monitor);
        await warmMachine(machine.agent, signal);
        await machine.monitor.execute("stop", {});
        hold(machine, false);
        shelf.push(machine);
      } catch (error) {
        await removeTransientMachine(host, place);
        throw error;
      }
    }
  }

  #all(): LaunchedMachine[] {
    return [...this.#shelves.values()].flat();
  }

  /** There is no time left to wait in: what is left, the next program finds by its directory, and clears away. */
  readonly #endAll = (): void => killAll(this.#all().map(({ pid }) => pid));
}

/** A program that has nothing else to do may end. */
function hold({ agent, monitor }: LaunchedMachine, isHeld: boolean): void {
  if (isHeld) agent.ref();
  else agent.unref();
  monitor.isHeld = isHeld;
}

async function discard(host: QemuHost, machine: LaunchedMachine): Promise<void> {
  machine.agent.destroy();
  machine.monitor.close();
  await removeTransientMachine(host, machine);
}

/** What cannot be changed any more once QEMU has started. */
function shelfKey(host: QemuHost, shape: MachineShape): string {
  return `${templateKey(host, shape)} ${shape.vcpuCount} ${shape.maxProcesses}`;
}
