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
/** Leaves the processors to the sandbox that has just started. */
const REST_MS = 50;

/**
 * Clones that have started, have run a command and are paused. A new machine spends most of its time in QEMU's start
 * and in the translation of its first code; a prepared machine has both behind it.
 */
export class PreparedMachines implements AsyncDisposable {
  readonly #count: number;
  readonly #machines = new Map<string, LaunchedMachine[]>();
  readonly #filling = new Map<string, Promise<void>>();
  #host: QemuHost | undefined;
  #isClosed = false;

  constructor(count: number) {
    this.#count = count;
    if (count > 0) process.once("exit", this.#endAll);
  }

  take(host: QemuHost, shape: MachineShape): LaunchedMachine | undefined {
    const machines = this.#machines.get(machineKey(host, shape)) ?? [];
    for (;;) {
      const machine = machines.shift();
      if (machine === undefined) return undefined;
      if (!machine.monitor.isClosed) {
        hold(machine, true);
        return machine;
      }
      // It has ended in the meantime.
      removeTransientMachine(host, machine).catch(() => {});
    }
  }

  /** Works in the background. A creation in the meantime starts its own machine. */
  refill(host: QemuHost, shape: MachineShape, template: Template): void {
    const key = machineKey(host, shape);
    this.#host = host;
    if (this.#count === 0 || this.#isClosed || this.#filling.has(key)) return;
    const filling = this.#fill(host, key, { shape, template })
      // The next creation tries again and reports the error.
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
    this.#machines.clear();
  }

  async #fill(
    host: QemuHost,
    key: string,
    { shape, template }: { readonly shape: MachineShape; readonly template: Template },
  ): Promise<void> {
    const machines = this.#machines.get(key) ?? [];
    this.#machines.set(key, machines);
    await sleep(REST_MS);
    while (machines.length < this.#count && !this.#isClosed) {
      const transient = await createTransientMachine(host);
      try {
        const signal = AbortSignal.timeout(START_TIMEOUT_MS);
        const machine = await launchClone(host, { ...transient, template, shape, signal });
        await loadState(machine.monitor);
        await warmMachine(machine.agent, signal);
        await machine.monitor.execute("stop", {});
        hold(machine, false);
        machines.push(machine);
      } catch (error) {
        await removeTransientMachine(host, transient);
        throw error;
      }
    }
  }

  #all(): LaunchedMachine[] {
    return [...this.#machines.values()].flat();
  }

  /** An exiting process cannot wait. The next program finds the directories and removes them. */
  readonly #endAll = (): void => killAll(this.#all().map(({ pid }) => pid));
}

/** A prepared machine does not keep the program from exiting. */
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

/** What a machine cannot change once QEMU has started. */
function machineKey(host: QemuHost, shape: MachineShape): string {
  return `${templateKey(host, shape)} ${shape.vcpuCount} ${shape.maxProcesses}`;
}
