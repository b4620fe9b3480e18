import type { SandboxId } from "@sandpiper/protocol";
import type { ProjectEngine } from "./project-engine.ts";
import type { Vm } from "./vm/vm-driver.ts";

/** The engines of the running machines, and the engine of each sandbox. */
export class ProjectEngines {
  readonly #create: (vm: Vm) => ProjectEngine;
  readonly #engines = new Map<string, ProjectEngine>();
  readonly #engineOf = new Map<SandboxId, ProjectEngine>();
  readonly #listeners = new Set<(engine: ProjectEngine) => void>();

  constructor(create: (vm: Vm) => ProjectEngine) {
    this.#create = create;
  }

  get all(): readonly ProjectEngine[] {
    return [...this.#engines.values()];
  }

  of(vm: Vm): ProjectEngine {
    const known = this.#engines.get(vm.id);
    if (known !== undefined) return known;
    const engine = this.#create(vm);
    this.#engines.set(vm.id, engine);
    engine.gone.addEventListener("abort", () => this.#forget(engine), { once: true });
    for (const listener of this.#listeners) listener(engine);
    return engine;
  }

  engineOf(id: SandboxId): ProjectEngine | undefined {
    return this.#engineOf.get(id);
  }

  assign(id: SandboxId, engine: ProjectEngine): void {
    if (!engine.gone.aborted) this.#engineOf.set(id, engine);
  }

  unassign(id: SandboxId, engine: ProjectEngine): void {
    if (this.#engineOf.get(id) === engine) this.#engineOf.delete(id);
  }

  /** Calls the listener for each new engine, until the returned function is called. */
  onAdded(listener: (engine: ProjectEngine) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #forget(engine: ProjectEngine): void {
    this.#engines.delete(engine.vm.id);
    for (const [id, its] of this.#engineOf) if (its === engine) this.#engineOf.delete(id);
  }
}
