import type { Clock, Provider } from "@sandpiper/core";
import { unlessAborted } from "../host/unless-aborted.ts";
import { PublishedPorts } from "./published-ports.ts";
import { machineEnded } from "./vm/project-vm.ts";
import type { Vm } from "./vm/vm-driver.ts";

/** The engine in a project's machine, and the provider that creates containers in it. */
export class ProjectEngine {
  readonly vm: Vm;
  readonly provider: Provider;
  /** Aborted, with the reason, once the machine has ended. */
  readonly gone: AbortSignal;
  readonly ports: PublishedPorts;
  /** Sandboxes of this machine have used caches. */
  hasCaches = false;

  constructor(vm: Vm, createProvider: (clock: Clock) => Provider, clock: Clock) {
    const ending = new AbortController();
    this.vm = vm;
    this.gone = ending.signal;
    this.provider = createProvider(clockUntil(ending.signal, clock));
    const { containers } = this.provider;
    this.ports = new PublishedPorts({
      vm,
      addressOf: async (id, port) => (await containers?.get(id))?.addresses[port],
    });
    vm.exited.then((exit) => {
      ending.abort(machineEnded(vm, exit));
      return this.ports.closeAll();
    });
  }

  /** Runs work in the machine, and rejects with `machine_ended` when the machine ends first. */
  async while<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const both = signal === undefined ? this.gone : AbortSignal.any([signal, this.gone]);
    return await unlessAborted(() => work(both), this.gone).catch((thrown: unknown) => {
      // A call of an ended engine fails with a broken connection; report the cause instead.
      throw this.gone.aborted ? this.gone.reason : thrown;
    });
  }

  /** Like `while`, but resolves to undefined when the machine has ended: its containers ended with it. */
  async whileRunning<T>(work: () => Promise<T>): Promise<T | undefined> {
    return await this.while(work).catch((thrown: unknown) => {
      if (!this.gone.aborted) throw thrown;
      return undefined;
    });
  }
}

/** Drops all timers when the machine ends, so that nothing retries its engine. */
function clockUntil(gone: AbortSignal, clock: Clock): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    now: () => clock.now(),
    schedule(delayMs, callback) {
      if (gone.aborted) return () => {};
      const cancel = clock.schedule(delayMs, () => {
        gone.removeEventListener("abort", cancel);
        callback();
      });
      gone.addEventListener("abort", cancel, { once: true });
      return () => {
        gone.removeEventListener("abort", cancel);
        cancel();
      };
    },
  };
}
